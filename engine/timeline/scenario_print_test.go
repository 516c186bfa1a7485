package timeline

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kconverge/kconverge/collect"
)

// since prints a time as the scenario writes it.
func sinceEpoch(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Sub(epoch).String()
}

func signed(d time.Duration) string {
	if d < 0 {
		return d.String()
	}
	return "+" + d.String()
}

func nameOf(e Endpoint) string {
	switch {
	case e.EndpointID == EndpointID{}:
		return "service"
	case e.Pod != "" && e.Family == collect.IPv6:
		return e.Pod + " IPv6"
	case e.Pod != "":
		return e.Pod
	}
	return e.IP.String() + "(" + e.UID + ")"
}

// section prints one view of a snapshot's Service; its first word says which.
func section(s *Snapshot, name string) (string, error) {
	f := strings.Fields(name)
	svcName := "web"
	if i := slices.Index(f, "of"); i >= 0 {
		svcName, f = f[i+1], f[:i]
	}
	svc := s.Service("default", svcName)
	if svc == nil {
		return "", fmt.Errorf("no Service %s in the snapshot", svcName)
	}
	var b strings.Builder
	switch f[0] {
	case "state":
		fmt.Fprintf(&b, "%s", svc.State)
		if !svc.Since.IsZero() {
			fmt.Fprintf(&b, " since %s", sinceEpoch(svc.Since))
		}
		if !svc.Deleted.IsZero() {
			fmt.Fprintf(&b, " deleted %s", sinceEpoch(svc.Deleted))
		}
		fmt.Fprintf(&b, "\nwatermark %s\n", sinceEpoch(s.Watermark))
	case "planes":
		for _, p := range append([]*Plane{svc.Slices, svc.Endpoints}, svc.Rules.All()...) {
			if p == nil {
				continue
			}
			c, ok := p.At(s.Now)
			if !ok {
				fmt.Fprintf(&b, "%s nothing known\n", p.ID)
				continue
			}
			fmt.Fprintf(&b, "%s want %d have %d", p.ID, c.Want, c.Have)
			if c.Knowledge != Known {
				fmt.Fprintf(&b, " %s", c.Knowledge)
			}
			if c.Baseline {
				b.WriteString(" baseline")
			}
			b.WriteByte('\n')
		}
	case "actions":
		for _, m := range svc.Marks {
			if m.Kind == "action" {
				fmt.Fprintf(&b, "%s %s\n", sinceEpoch(m.At), m.Text)
			}
		}
	case "paths":
		for _, p := range svc.Paths {
			printPath(&b, p)
		}
	case "failures":
		for i := range svc.Failures {
			f := &svc.Failures[i]
			why := svc.ExplainFailure(f, s.Nodes)
			fmt.Fprintf(&b, "%s to %s %s: %s", sinceEpoch(f.Began), sinceEpoch(f.Ended), f.Result, why.Kind)
			if len(why.Pods) > 0 {
				fmt.Fprintf(&b, " %s", strings.Join(why.Pods, " "))
			}
			b.WriteByte('\n')
		}
	case "official":
		for _, p := range svc.Paths {
			for _, h := range p.Rules {
				fmt.Fprintf(&b, "%s %s %s ", p.Op, nameOf(p.Endpoint), h.Plane.Node)
				if h.Official != nil {
					fmt.Fprintf(&b, "%s since %s\n", *h.Official, sinceEpoch(h.Trigger))
				} else {
					fmt.Fprintf(&b, "none: %s\n", h.OfficialWhy)
				}
			}
		}
	case "differences":
		for _, d := range svc.Differences {
			fmt.Fprintf(&b, "%s %s %s since %s", d.Plane, nameOf(d.Endpoint), d.Kind, sinceEpoch(d.Since))
			if !d.Stopped.IsZero() {
				fmt.Fprintf(&b, " stopped %s", sinceEpoch(d.Stopped))
			}
			b.WriteByte('\n')
		}
	case "wanted":
		for _, c := range svc.Wanted {
			fmt.Fprintf(&b, "%s %d\n", sinceEpoch(c.At), c.N)
		}
	case "episodes":
		for _, e := range svc.Episodes {
			fmt.Fprintf(&b, "%d %s..%s +%d -%d\n", e.N, sinceEpoch(e.Start), sinceEpoch(e.End), e.Adds, e.Removes)
		}
	case "pods":
		for _, p := range svc.Pods {
			fmt.Fprintf(&b, "%s", p.Name)
			for _, c := range p.Changes {
				claimed := ""
				if c.Claimed {
					claimed = "?"
				}
				fmt.Fprintf(&b, " %s%s %s", claimed, sinceEpoch(c.At), c.Phase)
			}
			b.WriteByte('\n')
		}
	case "coverage":
		c := svc.Coverage
		fmt.Fprintf(&b, "expected %v seen %v blind %v gap %v left out %v\n", c.Expected, c.Seen, c.Blind, c.Gap, c.LeftOut)
		for _, n := range c.Blind {
			if why := c.BlindWhy[n]; why != "" {
				fmt.Fprintf(&b, "blind node %s: %s\n", n, why)
			}
		}
		for p, why := range c.BlindPlanes {
			fmt.Fprintf(&b, "blind plane %s: %s\n", p.Kind, why)
		}
	case "workloads":
		for _, w := range svc.Workloads {
			b.WriteString(strings.TrimSpace(fmt.Sprintf("%s/%s settled %v %s", w.Kind, w.Name, w.Settled, w.Why)) + "\n")
		}
	case "lane":
		for _, p := range append([]*Plane{svc.Slices, svc.Endpoints}, svc.Rules.All()...) {
			if p != nil && p.ID.String() == f[1] {
				printLane(&b, p)
			}
		}
	case "past":
		for _, p := range append([]*Plane{svc.Slices, svc.Endpoints}, svc.Rules.All()...) {
			if p != nil && p.ID.String() == f[1] {
				printPast(&b, p.Past)
			}
		}
	case "arrivals":
		for _, p := range append([]*Plane{svc.Slices}, svc.Rules.All()...) {
			for _, a := range p.Arrivals {
				fmt.Fprintf(&b, "%s %s lag %s of %d settled %v\n", p.ID, sinceEpoch(a.At), a.Lag, len(a.Paths), a.Settled)
			}
		}
	case "marks":
		for _, m := range mergeMarks(s.Marks, svc.Marks) {
			if m.Kind != "action" {
				fmt.Fprintf(&b, "%s %s %s\n", sinceEpoch(m.At), m.Kind, strings.TrimSpace(m.Node+" "+m.Text))
			}
		}
	case "life":
		for _, p := range svc.Paths {
			printLife(&b, p)
		}
	case "capacity", "unrouted", "advice", "together":
		if err := printWindow(&b, s, svc, f); err != nil {
			return "", err
		}
	default:
		return "", fmt.Errorf("unknown section %q", name)
	}
	return b.String(), nil
}

func printPath(b *strings.Builder, p *Path) {
	fmt.Fprintf(b, "%s %s %s", p.Op, p.Cause, nameOf(p.Endpoint))
	if p.By != "" {
		fmt.Fprintf(b, " by %q", p.By)
	}
	fmt.Fprintf(b, " origin %s", sinceEpoch(p.Origin.At))
	if !p.Origin.NotBefore.IsZero() {
		fmt.Fprintf(b, " not before %s", sinceEpoch(p.Origin.NotBefore))
	}
	if !p.Origin.Claimed.IsZero() {
		fmt.Fprintf(b, " claimed %s", sinceEpoch(p.Origin.Claimed))
	}
	hop := func(name string, h *Hop) {
		if h.Status != StatusArrived {
			fmt.Fprintf(b, "\n  %s %s", name, h.Status)
			return
		}
		fmt.Fprintf(b, "\n  %s %s", name, signed(h.Lag))
		if h.FromStep != h.Lag {
			fmt.Fprintf(b, " from step %s", signed(h.FromStep))
		}
		if !h.NotBefore.IsZero() {
			fmt.Fprintf(b, " not before %s", sinceEpoch(h.NotBefore))
		}
		if h.Error != time.Millisecond {
			fmt.Fprintf(b, " error %s", h.Error)
		}
	}
	if p.Slice != nil {
		hop("slice", p.Slice)
	}
	if p.Endpoints != nil {
		hop("endpoints", p.Endpoints)
	}
	for i := range p.Rules {
		hop(p.Rules[i].Plane.Node, &p.Rules[i])
	}
	for _, r := range []struct {
		name string
		d    *time.Duration
	}{{"termination", p.Risk.FromTermination}, {"exit", p.Risk.FromExit}} {
		if r.d != nil {
			fmt.Fprintf(b, "\n  risk from %s %s", r.name, *r.d)
			b.WriteString(loose(p.Risk.Width, p.Risk.Error))
			if p.Risk.Growing {
				b.WriteString(" growing")
			}
		}
	}
	if p.Risk.WrongPod > 0 {
		fmt.Fprintf(b, "\n  wrong pod %s", p.Risk.WrongPod)
		if p.Risk.WrongPodGrowing {
			b.WriteString(" growing")
		}
	}
	fmt.Fprintf(b, "\n  %s\n", p.Status)
}

func printPast(b *strings.Builder, p *Past) {
	if p == nil {
		return
	}
	for _, c := range p.Changes {
		fmt.Fprintf(b, "%s %s", sinceEpoch(c.At), c.Kind)
		if c.Kind == PastHad {
			fmt.Fprintf(b, " %d", c.Have)
		}
		if c.Error > 0 {
			fmt.Fprintf(b, " ±%s", c.Error)
		}
		if c.OneSided {
			b.WriteString(" or earlier")
		}
		if c.Note != "" {
			fmt.Fprintf(b, " %s", c.Note)
		}
		b.WriteByte('\n')
	}
	fmt.Fprintf(b, "until %s\n", sinceEpoch(p.Until))
}

func printLane(b *strings.Builder, p *Plane) {
	for _, c := range p.Changes {
		fmt.Fprintf(b, "%s %d/%d", sinceEpoch(c.At), c.Have, c.Want)
		for _, x := range []struct {
			n    int
			name string
		}{{c.Missing, "missing"}, {c.Stale, "stale"}, {c.Unexpected, "unexpected"}, {c.Changed, "changed"}, {c.Stopped, "stopped"}} {
			if x.n > 0 {
				fmt.Fprintf(b, " %s %d", x.name, x.n)
			}
		}
		if c.Knowledge != Known {
			fmt.Fprintf(b, " %s", c.Knowledge)
		}
		if c.Baseline {
			b.WriteString(" baseline")
		}
		b.WriteByte('\n')
	}
}
