package timeline

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// loose prints what is not exact about a duration.
func loose(width, err time.Duration) string {
	out := ""
	if width > 0 {
		out = " less up to " + width.String()
	}
	if err != time.Millisecond {
		out += " ±" + err.String()
	}
	return out
}

func (a Amount) text(usual time.Duration) string {
	out := a.D.String()
	if a.Growing {
		out = ">" + out
	}
	if a.Width > 0 {
		out += " less up to " + a.Width.String()
	}
	if a.Error != usual {
		out += " ±" + a.Error.String()
	}
	return out
}

// window is what the words after a section's name choose: "episode N", "from
// TIME to TIME", or everything.
func window(s *Snapshot, svc *Service, f []string) (from, to time.Time, paths []*Path) {
	if i := slices.Index(f, "episode"); i >= 0 {
		e := svc.Episodes[num(f[i+1])-1]
		if to = e.End; to.IsZero() {
			to = s.Now
		}
		return e.Start, to, svc.PathsOf(e.Paths)
	}
	from, to = s.First, s.Now
	if i := slices.Index(f, "from"); i >= 0 {
		from, to = epoch.Add(dur(f[i+1])), epoch.Add(dur(f[i+3]))
	}
	return from, to, svc.PathsFrom(from, to)
}

func printWindow(b *strings.Builder, s *Snapshot, svc *Service, f []string) error {
	from, to, paths := window(s, svc, f[1:])
	var left []LeftOut
	var unseen []string
	switch f[0] {
	case "capacity":
		c := svc.Capacity(from, to)
		unseen = c.Unseen
		printLow(b, "answering", c.Answering, func(l *Low) int { return l.Answering })
		printLow(b, "routed", c.Routed, func(l *Low) int { return l.Routed })
		if c.Short != nil && *c.Short != *c.Answering {
			printLow(b, "short", c.Short, func(l *Low) int { return l.Answering })
		}
	case "unrouted":
		u := svc.Unrouted(paths, s.Now)
		left, unseen = u.LeftOut, u.Unseen
		usual := time.Duration(u.N) * time.Millisecond
		fmt.Fprintf(b, "%d additions, to the last %s, mean %s\n", u.N, u.ToLast.text(usual), u.Mean.text(usual))
	case "advice":
		a := svc.Advice(paths)
		left, unseen = a.LeftOut, a.Unseen
		fmt.Fprintf(b, "%d removals", a.N)
		if a.N > 0 {
			fmt.Fprintf(b, ", worst %s, preStop %s", a.Worst.text(time.Millisecond), a.Worst.Needed())
		}
		if a.P99 != nil {
			fmt.Fprintf(b, ", p99 %s", a.P99.text(time.Millisecond))
		}
		b.WriteByte('\n')
	case "together":
		for _, t := range svc.Together(from, to) {
			fmt.Fprintf(b, "%s %s %s..%s, %s%s\n", t.Workload, strings.Join(t.Revisions, " "), sinceEpoch(t.From), sinceEpoch(t.To), t.Length(s.Now), loose(0, t.Error))
		}
	}
	for _, l := range left {
		fmt.Fprintf(b, "left out %d: %s\n", l.N, l.Why)
	}
	if len(unseen) > 0 {
		fmt.Fprintf(b, "unseen %v\n", unseen)
	}
	return nil
}

func printLow(b *strings.Builder, what string, l *Low, n func(*Low) int) {
	if l == nil {
		fmt.Fprintf(b, "%s not known\n", what)
		return
	}
	fmt.Fprintf(b, "%s %d of %d on %s", what, n(l), l.Wanted, l.Node)
	if l.WantedByPods < 0 {
		fmt.Fprintf(b, " over %s", l.Family)
	}
	fmt.Fprintf(b, " at %s for %s%s", sinceEpoch(l.At), l.For, loose(0, l.Error))
	if what == "answering" && l.Routed != l.Answering {
		fmt.Fprintf(b, ", routed %d", l.Routed)
	}
	if l.WantedByPods >= 0 && l.WantedByPods != l.Wanted {
		fmt.Fprintf(b, ", by the pods %d", l.WantedByPods)
	}
	b.WriteByte('\n')
}

func printLife(b *strings.Builder, p *Path) {
	fmt.Fprintf(b, "%s %s %s\n", p.Op, p.Cause, nameOf(p.Endpoint))
	moment := func(name string, m Moment) {
		if m.At.IsZero() && m.Claimed.IsZero() {
			return
		}
		fmt.Fprintf(b, "  %s", name)
		if !m.At.IsZero() {
			fmt.Fprintf(b, " %s", sinceEpoch(m.At))
		}
		if !m.NotBefore.IsZero() {
			fmt.Fprintf(b, " not before %s", sinceEpoch(m.NotBefore))
		}
		if !m.Claimed.IsZero() {
			fmt.Fprintf(b, " claimed %s", sinceEpoch(m.Claimed))
		}
		b.WriteByte('\n')
	}
	moment("created", p.Before.Created)
	moment("scheduled", p.Before.Scheduled)
	moment("initialized", p.Before.Initialized)
	moment("started", p.Before.Started)
	for _, x := range p.Before.Pulls {
		fmt.Fprintf(b, "  pulled in %s at %s%s\n", x.Took, sinceEpoch(x.At), map[bool]string{true: " for an init container"}[x.Init])
	}
	for _, x := range p.Before.Probes {
		fmt.Fprintf(b, "  %s probe failed %d times from %s to %s: %s\n", x.Kind, x.Count, sinceEpoch(x.First), sinceEpoch(x.Last), x.Message)
	}
	moment("ready", p.Before.Ready)
	moment("terminating", p.After.Terminating)
	moment("stopped", p.After.Stopped)
	moment("terminal", p.After.Terminal)
	moment("unpublished", p.After.Unpublished)
	moment("gone", p.After.Gone)
}

// mergeMarks joins those of the Service and those of none, by time.
func mergeMarks(a, b []Mark) []Mark {
	out := slices.Concat(a, b)
	slices.SortStableFunc(out, func(a, b Mark) int { return a.At.Compare(b.At) })
	return out
}
