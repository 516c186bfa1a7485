package lanestest

import (
	"fmt"
	"time"

	"pgregory.net/rapid"
)

// Random draws a story: a few pods come and go within a minute and every plane
// follows after a lag of its own, from nothing to several seconds, or never.
func Random(t *rapid.T) Spec {
	now := Start.Add(time.Duration(rapid.Int64Range(int64(time.Second), int64(time.Minute)).Draw(t, "now")))
	s := Spec{Namespace: "default", Name: "web", First: Start, Now: now, Watermark: now.Add(-ms(100)), Nodes: []string{"node-1", "node-2", "node-3"}}
	lag := func(name string) time.Duration {
		if rapid.IntRange(0, 9).Draw(t, name+" never") == 0 {
			return Never
		}
		return time.Duration(rapid.Int64Range(1, int64(6*time.Second)).Draw(t, name))
	}
	draw := func(name string) Lags {
		l := Lags{Slice: time.Duration(rapid.Int64Range(1, int64(ms(50))).Draw(t, name+" slice")), Nodes: map[string]time.Duration{}}
		l.Endpoints = l.Slice + ms(5)
		for _, n := range s.Nodes {
			if l.Nodes[n] = lag(name + " " + n); l.Nodes[n] != Never {
				l.Nodes[n] += l.Slice
			}
		}
		return l
	}
	for i := rapid.IntRange(0, 6).Draw(t, "pods"); i > 0; i-- {
		p := Pod{Name: fmt.Sprintf("web-%d", i), Node: s.Nodes[i%3], IP: fmt.Sprintf("10.244.%d.%d", i%3+1, i+1)}
		at := Start.Add(time.Duration(rapid.Int64Range(0, int64(now.Sub(Start))).Draw(t, "created")))
		p.Base = rapid.Bool().Draw(t, "base")
		if !p.Base {
			p.Created, p.Started, p.Ready = at, at.Add(ms(300)), at.Add(ms(2300))
			p.Add = draw("add")
		}
		if rapid.Bool().Draw(t, "leaves") {
			// After every node has followed the addition.
			p.Term = at.Add(10 * time.Second)
			p.Stop, p.Gone = p.Term.Add(ms(1000)), p.Term.Add(ms(1040))
			p.Remove = draw("remove")
			for n, d := range p.Add.Nodes {
				if d == Never {
					p.Add.Nodes[n] = time.Second
				}
			}
		}
		for _, x := range []*time.Time{&p.Started, &p.Ready, &p.Term, &p.Stop, &p.Gone} {
			if x.After(now) {
				*x = time.Time{}
			}
		}
		s.Pods = append(s.Pods, p)
	}
	return s
}
