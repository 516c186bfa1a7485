package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kconverge/kconverge/collect"
)

// row is one line of a waterfall, from and to counting from the first row's.
type row struct {
	name     string
	from, to time.Time
	open     bool
	// claimed: one of the ends was not observed.
	claimed bool
	// without: no time can be given.
	without bool
	// atMost: it came at some time before to.
	atMost bool
	note   string
	// told is said in place of a bar: what cannot be put on this clock.
	told string
}

func rows(x *Path, loc *time.Location) []row {
	var out []row
	at := x.Origin.At
	if x.Op == "add" && x.Before.Created != nil && x.Cause == "pod-ready" {
		prev, claimed := *x.Before.Created, false
		for _, b := range []struct {
			name string
			t    *time.Time
		}{{"created", x.Before.Created}, {"scheduled", x.Before.Scheduled}, {"initialised", x.Before.Initialised}, {"started", x.Before.Started}, {"ready", &at}} {
			if b.t == nil {
				continue
			}
			if b.name == "initialised" || b.name == "started" {
				out = append(out, pullRows(x.Before.Pulls, b.name == "initialised", loc)...)
			}
			if b.t == &at {
				out = append(out, probeRows(x.Before.Probes, loc)...)
			}
			r := row{name: b.name, from: prev, to: *b.t, claimed: claimed}
			prev, claimed = *b.t, slices.Contains(x.Before.Claimed, b.name)
			if claimed && b.t != &at {
				r.claimed, r.note = true, "claimed"
			}
			out = append(out, r)
		}
	} else {
		out = append(out, row{name: strings.ReplaceAll(x.Cause, "-", " "), from: at, to: at})
	}
	hop := func(name string, h *Hop) {
		if h == nil {
			return
		}
		r := row{name: name, from: at, to: at, note: h.Note}
		switch {
		case h.At != nil:
			r.to, r.atMost = *h.At, h.NotBefore != nil
		case h.Status == "open":
			r.open = true
		default:
			r.without, r.note = true, h.Status
		}
		out = append(out, r)
	}
	hop("slice", x.Slice)
	hop("endpoints v1", x.Endpoints)
	if x.Rules != nil {
		start := at
		if x.Slice != nil && x.Slice.At != nil {
			start = *x.Slice.At
		}
		for _, node := range sortedKeys(x.Rules.ByNode) {
			h := x.Rules.ByNode[node]
			hop(collect.Plain(node), &h.Hop)
			out[len(out)-1].from = start
		}
	}
	return append(out, afterRows(x)...)
}

// pullRows tell of the images that were pulled. Their times are claimed, as those of probes.
func pullRows(pulls []Pull, init bool, loc *time.Location) []row {
	var out []row
	for _, p := range pulls {
		if p.Init == init {
			out = append(out, row{name: "image pulled", without: true, told: "in " + Dur(p.TookMS) + ", at " + p.At.In(loc).Format(time.TimeOnly) + " (claimed)"})
		}
	}
	return out
}

// probeRows tell of the probes that failed before the pod was ready. Their times
// are claimed, so that they have no place among the bars.
func probeRows(probes []Probe, loc *time.Location) []row {
	var out []row
	for _, b := range probes {
		told := "once"
		if b.Count > 1 {
			told = fmt.Sprintf("%d times", b.Count)
		}
		first, last := b.First.In(loc).Format(time.TimeOnly), b.Last.In(loc).Format(time.TimeOnly)
		if told += ", at " + first; last != first {
			told += " to " + last
		}
		out = append(out, row{name: b.Kind + " failed", without: true, told: told + " (claimed): " + b.Message})
	}
	return out
}

// afterRows are how a removed pod ended, in the order of time, each from the one
// before. The last node to let go is one of them.
func afterRows(x *Path) []row {
	type step struct {
		name, key string
		at        *time.Time
	}
	steps := []step{
		{"stopped", "stopped", x.After.Stopped}, {"terminal", "terminal", x.After.Terminal},
		{"out of slices", "unpublished", x.After.Unpublished}, {"gone", "gone", x.After.Gone},
	}
	steps = slices.DeleteFunc(steps, func(s step) bool {
		return s.at == nil || s.at.Before(x.Origin.At) || slices.Contains(x.After.Claimed, s.key)
	})
	if len(steps) == 0 {
		return nil
	}
	if x.Rules != nil && x.EndMS != nil && len(x.Rules.ByNode) > 1 {
		var last time.Time
		for _, h := range x.Rules.ByNode {
			if h.At != nil && h.At.After(last) {
				last = *h.At
			}
		}
		steps = append(steps, step{"out of rules", "", &last})
	}
	slices.SortStableFunc(steps, func(a, b step) int { return a.at.Compare(*b.at) })
	var out []row
	prev := x.Origin.At
	for _, s := range steps {
		if s.at.IsZero() {
			continue
		}
		out = append(out, row{name: s.name, from: prev, to: *s.at, atMost: !x.After.NotBefore[s.key].IsZero()})
		prev = *s.at
	}
	return out
}

func (p *printer) waterfall(rows []row) {
	bar, tick, open, atMost := p.glyphs()
	name := 16
	for _, r := range rows {
		name = max(name, min(len([]rune(r.name)), p.o.Width-84))
	}
	left := name + 14
	first, last := rows[0].from, rows[0].to
	for i, r := range rows {
		if r.told != "" {
			continue
		}
		if r.open && p.now.After(r.from) {
			r.to = p.now
			rows[i] = r
		}
		if r.from.Before(first) {
			first = r.from
		}
		if r.to.Before(first) {
			first = r.to
		}
		if r.to.After(last) {
			last = r.to
		}
	}
	width := p.o.Width - left - 24
	span := last.Sub(first)
	cell := func(t time.Time) int {
		if span <= 0 {
			return 0
		}
		return int(float64(t.Sub(first)) / float64(span) * float64(width-1))
	}
	for i, r := range rows {
		took := dur(float64(r.to.Sub(r.from).Microseconds()) / 1000)
		switch {
		case i == 0, r.without:
			took = ""
		case r.atMost:
			took = atMost + took
		case r.claimed:
			took = fmt.Sprintf("~%.0f s", r.to.Sub(r.from).Seconds())
		}
		if r.told != "" {
			note := []rune(collect.Plain(r.told))
			p.line("  %-*s %9s  %s", name, p.shorten(r.name, name), "", string(note[:min(len(note), p.o.Width-left)]))
			continue
		}
		a, b := cell(r.from), cell(r.to)
		if b < a {
			a, b = b, a
		}
		var drawn string
		switch {
		case r.open:
			took = "not yet"
			drawn = strings.Repeat(" ", a) + strings.Repeat(bar, max(width-a-1, 0)) + open
		case a == b:
			drawn = strings.Repeat(" ", a) + tick
		default:
			drawn = strings.Repeat(" ", a) + strings.Repeat(bar, b-a)
		}
		note := collect.Plain(r.note)
		if room := p.o.Width - left - width - 2; len([]rune(note)) > room {
			note = string([]rune(note)[:room])
		}
		p.line("  %-*s %9s  %s%s %s", name, p.shorten(r.name, name), took, drawn, strings.Repeat(" ", max(width-len([]rune(drawn)), 0)), note)
	}
}

// dur writes milliseconds for people: three figures at most.
func dur(v float64) string {
	neg := ""
	if v < 0 {
		neg, v = "-", -v
	}
	switch {
	case v < 10:
		return fmt.Sprintf("%s%.1f ms", neg, v)
	case v < 1000:
		return fmt.Sprintf("%s%.0f ms", neg, v)
	case v < 10_000:
		return fmt.Sprintf("%s%.2f s", neg, v/1000)
	case v < 100_000:
		return fmt.Sprintf("%s%.1f s", neg, v/1000)
	}
	return neg + time.Duration(v*float64(time.Millisecond)).Round(time.Second).String()
}

// shorten keeps the end of a name, by which the nodes of a pool differ.
func (p *printer) shorten(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	mark := "…"
	if p.o.ASCII {
		mark = "~"
	}
	return mark + string(r[len(r)-n+1:])
}
