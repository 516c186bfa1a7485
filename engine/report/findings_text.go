package report

import (
	"io"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/kconverge/kconverge/collect"
)

// WriteFindings prints the findings alone, as WriteText does at its end, for who asks
// for nothing else. The first line says of what and as of when.
func (r *Report) WriteFindings(w io.Writer, o TextOptions) error {
	p := newPrinter(w, o, r)
	p.heading(r)
	if len(r.Findings) == 0 {
		p.line("")
		p.line("nothing found")
	}
	p.findings(r.Findings)
	return p.err
}

// findings prints each with what to do below it, in the width there is.
func (p *printer) findings(list []Finding) {
	for i := range list {
		f := &list[i]
		p.line("")
		since := ""
		if f.Since != nil && p.now.After(*f.Since) {
			since = "  since " + p.moment(*f.Since)
		}
		p.line("%-7s  %s  %s%s", f.Severity, f.Code, collect.Plain(f.Object), since)
		for _, x := range Wrap(collect.Plain(f.Message), p.o.Width-9) {
			p.line("         %s", x)
		}
		for k, x := range Wrap(collect.Plain(f.Fix), p.o.Width-11) {
			if k == 0 {
				p.line("       %s %s", p.arrow(), x)
				continue
			}
			p.line("         %s", x)
		}
	}
}

func (p *printer) arrow() string {
	if p.o.ASCII {
		return ">"
	}
	return "→"
}

// moment is a clock time, with its day when it is of another one than now.
func (p *printer) moment(t time.Time) string {
	if at, now := t.In(p.o.Location), p.now.In(p.o.Location); at.YearDay() != now.YearDay() || at.Year() != now.Year() {
		return at.Format(time.DateTime)
	}
	return t.In(p.o.Location).Format(time.TimeOnly)
}

// Wrap breaks a text between words into lines of at most width cells; a word that is
// longer gets a line of its own.
func Wrap(s string, width int) (out []string) {
	line := ""
	for _, word := range strings.Fields(s) {
		switch {
		case line == "":
			line = word
		case ansi.StringWidth(line)+1+ansi.StringWidth(word) <= width:
			line += " " + word
		default:
			out = append(out, line)
			line = word
		}
	}
	if line != "" {
		out = append(out, line)
	}
	return out
}
