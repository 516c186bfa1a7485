package export

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/engine/report"
	"github.com/kconverge/kconverge/engine/timeline"
)

// What fits into an issue: so many changes of each Service have a row, and so many of
// the slowest a waterfall.
const (
	markdownRows       = 50
	markdownWaterfalls = 5
	markdownWidth      = 96
)

// Markdown writes a summary to paste into an issue: for each Service its state, a table
// of its changes, the slowest as waterfalls, what the episodes cost; then findings and
// gaps. Whatever comes from the cluster stands in code, where it means nothing to Markdown.
func (d *Document) Markdown(w io.Writer) error {
	m := &markdown{Writer: bufio.NewWriter(w), d: d, text: report.TextOptions{Width: markdownWidth, Location: d.Location}}
	m.head()
	for i := range d.Report.Services {
		m.service(&d.Report.Services[i])
	}
	if len(d.Report.Services) == 0 {
		m.line("\nNo Service to report on.")
	}
	if len(d.Report.Findings) > 0 {
		m.line("\n### Findings")
		m.fence(func(w io.Writer) error { return d.Report.WriteFindings(w, m.text) })
	}
	m.gaps()
	if m.err != nil {
		return m.err
	}
	return m.Flush()
}

type markdown struct {
	*bufio.Writer
	d    *Document
	text report.TextOptions
	err  error
}

func (m *markdown) line(format string, args ...any) { fmt.Fprintf(m, format+"\n", args...) }

func (m *markdown) head() {
	r := m.d.Report
	m.line("## kconverge: %s", code(r.Source.Kind+" "+r.Source.Name))
	m.line("")
	asOf := "nothing is vouched for yet"
	if !r.AsOf.IsZero() {
		asOf = "as of " + m.moment(r.AsOf)
	}
	zone, _ := r.Window.To.In(m.d.Location).Zone()
	m.line("%s to %s %s, %s.", m.moment(r.Window.From), m.moment(r.Window.To), zone, asOf)
	for _, x := range []struct{ what, text string }{{"Control plane", r.Source.ControlPlane}, {"Rules", r.Source.Rules}, {"Made with", m.d.Tool}} {
		if x.text != "" {
			m.line("%s: %s.", x.what, code(x.text))
		}
	}
}

func (m *markdown) moment(t time.Time) string {
	return t.In(m.d.Location).Format("2006-01-02 15:04:05.000")
}

func (m *markdown) service(v *report.Service) {
	m.line("\n### %s", code(v.Namespace+"/"+v.Name))
	m.fence(func(w io.Writer) error { return m.d.Report.WriteService(w, v, m.text) })
	if len(v.Paths) == 0 {
		m.line("\nNo change.")
		return
	}
	m.table(v)
	m.waterfalls(v)
	m.fence(func(w io.Writer) error { return m.d.Report.WriteWindows(w, v, m.text) })
}

// table has a row for each of the latest changes.
func (m *markdown) table(v *report.Service) {
	paths := v.Paths
	m.line("")
	if n := len(paths) - markdownRows; n > 0 {
		paths = paths[n:]
		m.line("The latest %d of %d changes (`--to csv` has all):\n", markdownRows, len(v.Paths))
	}
	m.line("| change | endpoint | cause | origin | slice | first node | last node | missing | status |")
	m.line("|---|---|---|---|--:|--:|--:|--:|---|")
	for i := range paths {
		p := &paths[i]
		who := p.Endpoint.Pod
		if who == "" {
			who = p.Endpoint.IP
		}
		if who == "" {
			who = "frontends"
		}
		cause := strings.ReplaceAll(p.Cause, "-", " ")
		if p.By != "" {
			cause += " by " + code(p.By)
		}
		slice, first, last, missing := "", "", "", ""
		if p.Slice != nil {
			slice = lag(p.Slice)
		}
		if p.Rules != nil {
			first, last = nodeLag(p.Rules, p.Rules.FirstMS), nodeLag(p.Rules, p.Rules.LastMS)
			if n := len(p.Rules.Missing); n > 0 {
				missing = fmt.Sprint(n)
			}
		}
		m.line("| %s | %s | %s | %s | %s | %s | %s | %s | %s |", p.Op, code(who), cause, p.Origin.At.In(m.d.Location).Format("15:04:05.000"),
			slice, first, last, missing, p.Status)
	}
}

// slowestFirst are a Service's changes: those that are open, then the others, each by how
// long it took. One that was superseded is over, though it arrived nowhere.
func (d *Document) slowestFirst(v *report.Service) []*report.Path {
	order := make([]*report.Path, 0, len(v.Paths))
	for i := range v.Paths {
		order = append(order, &v.Paths[i])
	}
	rank := func(p *report.Path) int {
		if p.Status == string(timeline.StatusOpen) {
			return 0
		}
		return 1
	}
	took := func(p *report.Path) time.Duration { return d.end(p).Sub(p.Origin.At) }
	slices.SortStableFunc(order, func(a, b *report.Path) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(took(b), took(a)))
	})
	return order
}

// waterfalls prints those of the changes that took longest, open ones first.
func (m *markdown) waterfalls(v *report.Service) {
	order := m.d.slowestFirst(v)
	if n := len(order); n > markdownWaterfalls {
		m.line("\nThe slowest %d of %d changes:", markdownWaterfalls, n)
		order = order[:markdownWaterfalls]
	}
	m.fence(func(w io.Writer) error {
		for _, p := range order {
			if err := m.d.Report.WritePath(w, p, m.text); err != nil {
				return err
			}
		}
		return nil
	})
}

func (m *markdown) gaps() {
	if len(m.d.Report.Gaps) == 0 {
		return
	}
	m.line("\n### Gaps\n")
	for _, g := range m.d.Report.Gaps {
		to := "still open"
		if g.To != nil {
			to = "to " + m.moment(*g.To)
		}
		m.line("- %s from %s %s: %s", code(g.Source), m.moment(g.From), to, code(g.Why))
	}
}

// fence prints what write writes as a block of code, longer fenced than anything in it;
// nothing when it writes nothing.
func (m *markdown) fence(write func(io.Writer) error) {
	var b bytes.Buffer
	if err := write(&b); err != nil && m.err == nil {
		m.err = err
	}
	text := strings.Trim(b.String(), "\n")
	if text == "" {
		return
	}
	mark := strings.Repeat("`", max(3, longest(text, '`')+1))
	m.line("\n%stext\n%s\n%s", mark, text, mark)
}

// code makes a code span that also stands in a table.
func code(s string) string {
	s = strings.TrimSpace(collect.Plain(s))
	if s == "" {
		return ""
	}
	mark := strings.Repeat("`", longest(s, '`')+1)
	if strings.HasPrefix(s, "`") || strings.HasSuffix(s, "`") {
		s = " " + s + " "
	}
	return mark + strings.ReplaceAll(s, "|", `\|`) + mark
}

// longest is the length of the longest run of c.
func longest(s string, c rune) (most int) {
	n := 0
	for _, r := range s {
		if n++; r != c {
			n = 0
		}
		most = max(most, n)
	}
	return most
}

func lag(h *report.Hop) string {
	switch {
	case h.LagMS == nil:
		return h.Status
	case h.NotBefore != nil:
		return "≤" + report.Dur(*h.LagMS)
	}
	return report.Dur(*h.LagMS)
}

// nodeLag is the lag of some node, with a sign where it is the most that it can be.
func nodeLag(r *report.Rules, v *float64) string {
	if v == nil {
		return ""
	}
	for _, h := range r.ByNode {
		if h.LagMS != nil && *h.LagMS == *v && h.NotBefore != nil {
			return "≤" + report.Dur(*v)
		}
	}
	return report.Dur(*v)
}
