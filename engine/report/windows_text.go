package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kconverge/kconverge/collect"
)

// windows prints what the episodes cost, and what would have helped.
func (p *printer) windows(s *Service) {
	for i := range s.Episodes {
		e := &s.Episodes[i]
		if e.Capacity == nil {
			continue
		}
		head := "episode " + p.clock(e.Start)
		if e.End == nil {
			head += ", not over"
		} else {
			head += ", " + dur(float64(e.End.Sub(e.Start).Microseconds())/1000)
		}
		p.line("")
		p.line("%s: +%d -%d", head, e.Adds, e.Removes)
		p.capacity(e.Capacity)
		p.unrouted(e.Unrouted)
		for _, t := range e.Together {
			p.together(&t)
		}
	}
	if s.Advice != nil && (s.Advice.N > 0 || len(s.Advice.LeftOut) > 0) {
		p.line("")
		p.advice(s.Advice)
	}
}

func (p *printer) capacity(c *Capacity) {
	if l := c.Answering; l != nil {
		if l.Answering >= l.Wanted {
			p.wrap(fmt.Sprintf("never fewer than %s could answer on any node", counted(l.Answering, l.what("endpoint"), l.what("endpoints"))))
		} else {
			p.low("at the lowest", l)
		}
	}
	if l, a := c.Short, c.Answering; l != nil && (a == nil || l.Node != a.Node || l.Family != a.Family || !l.At.Equal(a.At)) {
		p.low("at the worst", l)
	}
	p.unseen(c.Unseen, "not known all the time")
}

// what is a word for the endpoints that a low is of.
func (l *Low) what(s string) string {
	if l.WantedByPods == nil {
		return l.Family + " " + s
	}
	return s
}

func (p *printer) low(when string, l *Low) {
	text := fmt.Sprintf("%s %d of %d wanted %s could answer, on %s from %s for %s", when, l.Answering, l.Wanted, l.what("endpoints"),
		collect.Plain(l.Node), p.clock(l.At), dur(l.ForMS))
	if l.ErrorMS > 1 {
		text += " " + p.plusMinus() + dur(l.ErrorMS)
	}
	if l.Routed != l.Answering {
		text += fmt.Sprintf("; it routed to %d", l.Routed)
	}
	if l.WantedByPods != nil && *l.WantedByPods != l.Wanted {
		text += fmt.Sprintf("; the pods wanted %d", *l.WantedByPods)
	}
	p.wrap(text)
}

func (p *printer) unseen(nodes []string, what string) {
	if len(nodes) > 0 {
		p.wrap(what + ": " + collect.Plain(strings.Join(nodes, ", ")))
	}
}

func (p *printer) unrouted(u *Unrouted) {
	if u == nil {
		return
	}
	if u.N > 0 {
		p.wrap(fmt.Sprintf("%s waited %s pod-seconds for the last node to route to them, %s as the mean over the nodes",
			counted(u.N, "addition", "additions"), p.podSeconds(u.ToLast), p.podSeconds(u.Mean)))
	}
	p.leftOut(u.LeftOut, "addition", "additions")
}

func (p *printer) podSeconds(a Amount) string {
	return p.atMostOrLeast(a) + fmt.Sprintf("%.3g", a.MS/1000)
}

func (p *printer) atMostOrLeast(a Amount) string {
	_, _, _, atMost := p.glyphs()
	switch {
	case a.AtLeast:
		return ">"
	case a.WidthMS > 0:
		return atMost
	}
	return ""
}

func (p *printer) together(t *Together) {
	text := fmt.Sprintf("revisions %s of %s side by side for %s %s%s from %s", collect.Plain(strings.Join(t.Revisions, " and ")), collect.Plain(t.Workload),
		dur(t.MS), p.plusMinus(), dur(t.ErrorMS), p.clock(t.From))
	if t.To == nil {
		text += ", still so"
	}
	p.wrap(text)
}

func (p *printer) advice(a *Advice) {
	if a.N > 0 {
		of := "the worst of " + counted(a.N, "removal", "removals")
		if a.N == 1 {
			of = "the one removal"
		}
		at := "at least"
		if a.Worst.AtLeast {
			at = "more than"
		}
		text := fmt.Sprintf("preStop of %s %s would have covered %s (%s%s %s%s)", at, seconds(*a.PreStopMS), of,
			p.atMostOrLeast(*a.Worst), dur(a.Worst.MS), p.plusMinus(), dur(a.Worst.ErrorMS))
		if a.P99 != nil {
			text += fmt.Sprintf("; %s%s the p99", p.atMostOrLeast(*a.P99), dur(a.P99.MS))
		}
		p.wrapAt("", text)
		p.unseen(a.Unseen, "a node that is not seen may have been later")
	}
	p.leftOut(a.LeftOut, "removal", "removals")
}

func (p *printer) leftOut(list []LeftOut, one, many string) {
	for _, l := range list {
		p.wrap(fmt.Sprintf("%s not counted: %s", counted(l.N, one, many), l.Why))
	}
}

func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// seconds writes a multiple of a tenth of a second.
func seconds(ms float64) string { return fmt.Sprintf("%.1f s", ms/1000) }

// wrap prints a sentence under a heading, in as many lines as it takes.
func (p *printer) wrap(text string) { p.wrapAt("  ", text) }

func (p *printer) wrapAt(indent, text string) {
	line := ""
	for _, w := range words(text) {
		if line != "" && len([]rune(indent+line))+1+len([]rune(w)) > p.o.Width {
			p.line("%s%s", indent, line)
			if line = ""; len(indent) < 4 {
				indent += "  "
			}
		}
		if line != "" {
			line += " "
		}
		line += w
	}
	p.line("%s%s", indent, line)
}

// words splits a text where a line may end: not between a number and its unit.
func words(text string) []string {
	var out []string
	for _, w := range strings.Fields(text) {
		if n := len(out); n > 0 && slices.Contains([]string{"ms", "s"}, strings.TrimRight(w, ",;:)")) {
			out[n-1] += " " + w
			continue
		}
		out = append(out, w)
	}
	return out
}
