package report

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/kconverge/kconverge/collect"
)

// TextOptions choose how the text is drawn.
type TextOptions struct {
	// Width of a line in cells; at least 60, default 100.
	Width int
	// ASCII avoids every character beyond 7 bits.
	ASCII bool
	// Location of the times shown; default UTC.
	Location *time.Location
}

// WriteText prints the report for people: a line for each Service, then each
// path as a waterfall. Text that comes from the cluster is stripped of control
// characters.
func (r *Report) WriteText(w io.Writer, o TextOptions) error {
	p := newPrinter(w, o, r)
	p.heading(r)
	for i := range r.Services {
		p.service(&r.Services[i])
	}
	if len(r.Services) == 0 {
		p.line("")
		p.line("No Service to report on.")
	}
	if len(r.Gaps) > 0 {
		p.line("")
	}
	for _, g := range r.Gaps {
		to := "still open"
		if g.To != nil {
			to = "to " + p.clock(*g.To)
		}
		p.line("gap  %s  from %s %s  %s", collect.Plain(g.Source), p.clock(g.From), to, collect.Plain(g.Why))
	}
	p.faults(r.Faults)
	p.findings(r.Findings)
	return p.err
}

func newPrinter(w io.Writer, o TextOptions, r *Report) *printer {
	if o.Width == 0 {
		o.Width = 100
	}
	o.Width = max(o.Width, 60)
	if o.Location == nil {
		o.Location = time.UTC
	}
	return &printer{w: w, o: o, now: r.Window.To}
}

// heading says what was observed, and until when it is known.
func (p *printer) heading(r *Report) {
	asOf := "nothing is vouched for yet"
	if !r.AsOf.IsZero() {
		asOf = "as of " + p.clock(r.AsOf)
	}
	p.line("%s %s, %s", collect.Plain(r.Source.Kind), collect.Plain(r.Source.Name), asOf)
	if r.Source.ControlPlane != "" {
		p.line("control plane: %s", collect.Plain(r.Source.ControlPlane))
	}
	if r.Source.Rules != "" {
		p.line("rules %s", collect.Plain(r.Source.Rules))
	}
}

type printer struct {
	w   io.Writer
	o   TextOptions
	now time.Time // the end of the window: where open rows end
	err error
}

func (p *printer) line(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintln(p.w, strings.TrimRight(fmt.Sprintf(format, args...), " "))
	}
}

func (p *printer) clock(t time.Time) string { return t.In(p.o.Location).Format("15:04:05.000") }

func (p *printer) glyphs() (bar, tick, open, atMost string) {
	if p.o.ASCII {
		return "=", "|", ">", "<="
	}
	return "━", "▏", "▸", "≤"
}

func (p *printer) plusMinus() string {
	if p.o.ASCII {
		return "+-"
	}
	return "±"
}

func (p *printer) service(s *Service) {
	p.line("")
	nodes := fmt.Sprintf("nodes %d/%d", s.Coverage.Seen, s.Coverage.Expected)
	for _, x := range []struct {
		what string
		who  []string
	}{{"blind", s.Coverage.Blind}, {"in a gap", s.Coverage.Gap}, {"left out", s.Coverage.LeftOut}} {
		if len(x.who) > 0 {
			nodes += fmt.Sprintf(", %s: %s", x.what, collect.Plain(strings.Join(x.who, ", ")))
		}
	}
	pods := "not seen"
	if s.Planes.Pods != nil {
		pods = (&Plane{Want: s.Planes.Pods.Have, Have: s.Planes.Pods.Have, Agree: true, Gap: s.Planes.Pods.Gap}).text()
	}
	p.line("%s/%s  %s  pods %s  slices %s  endpoints %s  rules %s  %s",
		collect.Plain(s.Namespace), collect.Plain(s.Name), s.State, pods,
		s.Planes.Slices.text(), s.Planes.Endpoints.text(), rulesText(s.Planes.Rules), nodes)
	for _, id := range sortedKeys(s.Coverage.BlindPlanes) {
		p.line("  %s are not seen: %s", id, collect.Plain(s.Coverage.BlindPlanes[id]))
	}
	by := map[string][]string{} // most nodes are blind for the same reason
	for _, node := range sortedKeys(s.Coverage.BlindWhy) {
		why := s.Coverage.BlindWhy[node]
		by[why] = append(by[why], node)
	}
	for _, why := range sortedKeys(by) {
		p.line("  rules of %s are not seen: %s", collect.Plain(strings.Join(by[why], ", ")), collect.Plain(why))
	}
	p.connections(s.Connections)
	for i := range s.Paths {
		p.path(&s.Paths[i])
	}
	p.windows(s)
}

func (pl *Plane) text() string {
	if pl == nil {
		return "not seen"
	}
	out := fmt.Sprintf("%d of %d", pl.Have, pl.Want)
	if pl.Have == pl.Want && pl.Agree {
		out = fmt.Sprint(pl.Have)
	}
	if pl.Gap {
		out += "?"
	}
	return out
}

func rulesText(m map[string]Plane) string {
	if len(m) == 0 {
		return "not seen"
	}
	var out []string
	for _, n := range sortedKeys(m) {
		p := m[n]
		out = append(out, p.text())
	}
	if len(out) > 12 {
		same := true
		for _, x := range out {
			same = same && x == out[0]
		}
		if same {
			return fmt.Sprintf("%s on each of %d nodes", out[0], len(out))
		}
	}
	return strings.Join(out, " ")
}

func (p *printer) path(x *Path) {
	sign := map[string]string{"add": "+", "remove": "-", "change": "~", "service": "="}[x.Op]
	who := collect.Plain(x.Endpoint.Pod)
	if who == "" {
		who = "frontends"
		if x.Endpoint.IP != "" {
			who = "address"
		}
	}
	by := ""
	if x.By != "" {
		by = " by " + collect.Plain(x.By)
	}
	total := string(x.Status)
	if x.EndMS != nil {
		total = dur(*x.EndMS)
		if x.atMost() {
			_, _, _, atMost := p.glyphs()
			total = atMost + total
		}
		total += " " + p.plusMinus() + dur(x.errorMS())
		if x.Status != "arrived" {
			total += ", " + x.Status
		}
	}
	p.line("")
	p.line("%s %s %s%s  %s%s  origin %s  %s", sign, who, x.Endpoint.IP, on(collect.Plain(x.Endpoint.Node)),
		strings.ReplaceAll(x.Cause, "-", " "), by, p.clock(x.Origin.At), total)
	p.waterfall(rows(x, p.o.Location))
	if x.RiskMS.FromTermination != nil || x.RiskMS.FromExit != nil {
		text := riskText(x.RiskMS)
		if x.RiskMS.Error > 0 {
			text += " " + p.plusMinus() + dur(x.RiskMS.Error)
		}
		p.line("  risk for new connections: %s", text)
	}
	if d := x.RiskMS.WrongPod; d != nil {
		p.line("  the wrong pod: routed to for %s after another pod was given the address", dur(*d))
	}
}

func on(node string) string {
	if node == "" {
		return ""
	}
	return " on " + node
}

// errorMS is the largest error of the path's arrivals.
func (x *Path) errorMS() float64 {
	most := 0.0
	if x.Slice != nil && x.Slice.At != nil {
		most = x.Slice.ErrorMS
	}
	if x.Rules != nil {
		for _, h := range x.Rules.ByNode {
			if h.At != nil {
				most = max(most, h.ErrorMS)
			}
		}
	}
	return most
}

// atMost reports that the last arrival, with which it ends, is only known to lie before
// its time.
func (x *Path) atMost() bool {
	loose := x.Slice != nil && x.Slice.NotBefore != nil
	if x.Rules == nil {
		return loose
	}
	var last time.Time
	for _, h := range x.Rules.ByNode {
		if h.At != nil && !h.At.Before(last) {
			loose = h.NotBefore != nil || h.At.Equal(last) && loose
			last = *h.At
		}
	}
	return loose
}

func riskText(r Risk) string {
	var out []string
	switch {
	case r.FromTermination == nil:
	case *r.FromTermination <= 0:
		out = append(out, "none from the start of termination")
	default:
		out = append(out, dur(*r.FromTermination)+" from the start of termination")
	}
	if r.FromExit != nil {
		if *r.FromExit <= 0 {
			out = append(out, "none from the containers' exit")
		} else {
			out = append(out, dur(*r.FromExit)+" from the containers' exit")
		}
	}
	if r.Width > 0 {
		out = append(out, "or less by up to "+dur(r.Width))
	}
	if r.Growing {
		out = append(out, "still growing")
	}
	return strings.Join(out, ", ")
}
