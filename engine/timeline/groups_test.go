package timeline

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// whole is everything that a snapshot says of Services. With settled, what folding
// loses is left out: since when endpoints are there, from before the plane's oldest
// change.
func whole(t *testing.T, s *Snapshot, settled bool) string {
	var b strings.Builder
	say := func(x any) {
		text, err := json.Marshal(x)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(append(text, '\n'))
	}
	fmt.Fprintln(&b, s.Seq, s.Now, s.Watermark, s.MaxInversion)
	for _, svc := range s.Services {
		fmt.Fprintln(&b, svc.Coverage)
		for _, x := range []any{svc.Namespace, svc.Name, svc.UID, svc.Spec, svc.Deleted, svc.WhyNot, svc.State, svc.Since, svc.Differences, svc.Workloads, svc.Wanted, svc.Pods,
			svc.Slices, svc.Endpoints, svc.SliceList, svc.Paths, svc.Episodes, svc.Marks} {
			say(x)
		}
		agreeing := 0
		for _, p := range svc.Rules.All() {
			if n := len(p.Changes); n > 0 && p.Changes[n-1].Knowledge == Known && p.Changes[n-1].Agrees() {
				agreeing++
			}
			q := *p
			q.Members = slices.Clone(p.Members)
			for i := range q.Members {
				m := &q.Members[i]
				m.Changes = slices.Clone(m.Changes)
				for j := range m.Changes {
					if c := &m.Changes[j]; settled && len(p.Changes) > 0 && c.At.Before(p.Changes[0].At) {
						c.At = p.Changes[0].At
					}
				}
			}
			if len(q.Arrivals) == 0 {
				q.Arrivals = nil
			}
			say(q)
		}
		fmt.Fprintln(&b, svc.Rules.Len(), svc.Rules.Agreeing())
		if n := len(svc.Rules.All()); n != svc.Rules.Len() || agreeing != svc.Rules.Agreeing() {
			t.Fatalf("%d planes of which %d agree, but it says %d and %d", n, agreeing, svc.Rules.Len(), svc.Rules.Agreeing())
		}
	}
	return b.String()
}

// scatter gives every node a plane of its own.
func scatter(m *Model) {
	for _, s := range m.services {
		for _, n := range m.nodeNames {
			s.single(n)
		}
	}
}

// Whether nodes share a plane or each has its own makes no difference to anything
// that is said, at any time.
func TestNodesInGroupsAreAsIfEachHadItsOwnPlane(t *testing.T) {
	shared, folded := 0, 0
	for seed := range uint64(30) {
		// With a short retention planes fold together, too.
		o := Options{Retention: time.Hour}
		settled := seed%2 == 1
		if settled {
			o.Retention = time.Minute
		}
		one, other := New(o), New(o)
		for i, e := range newCrowd(seed, seed%4 > 1 || settled) {
			one.Apply(e)
			other.Apply(e)
			scatter(other)
			if got, want := whole(t, one.Snapshot(), settled), whole(t, other.Snapshot(), settled); got != want {
				a, b := strings.Split(got, "\n"), strings.Split(want, "\n")
				for k := range min(len(a), len(b)) {
					if a[k] != b[k] {
						t.Fatalf("seed %d, event %d (%s %T):\n in groups %s\n scattered %s", seed, i, e.Source, e.Payload, a[k], b[k])
					}
				}
				t.Fatalf("seed %d, event %d: %d lines and %d", seed, i, len(a), len(b))
			}
			for _, s := range one.services {
				for _, g := range s.groups {
					if g.group.n > 1 {
						shared++
					}
					if g.group.starts != nil {
						folded++
					}
				}
			}
		}
	}
	if shared == 0 || folded == 0 {
		t.Errorf("%d groups of several nodes and %d that were folded: this says nothing", shared, folded)
	}
}

// What nodes had of their own is let go with the history, and they are one plane
// again; what a snapshot said before stays as it was.
func TestPlanesThatHaveSettledAreOneAgain(t *testing.T) {
	const nodes = 5
	m, loop := benchCluster(2, nodes)
	m.opt.Retention = 20 * time.Second
	s := m.service("default", "svc0")
	if len(s.groups) != 1 || len(s.rules) != 0 || s.groups[0].root == nil || len(s.groups[0].own) > 0 {
		t.Fatalf("%d groups and %d planes at the start", len(s.groups), len(s.rules))
	}
	for _, e := range loop {
		m.Apply(e)
	}
	end := loop[len(loop)-1].At
	m.Apply(advance(end.Add(time.Second)))
	if len(s.groups) != 0 || len(s.rules) != nodes {
		t.Fatalf("%d groups and %d planes after each node has made a step", len(s.groups), len(s.rules))
	}
	before := m.Snapshot()
	was, planes := whole(t, before, false), before.Service("default", "svc0").Rules.All()
	for i := range 4 {
		m.Apply(advance(end.Add(time.Duration(i+1) * time.Minute)))
	}
	if len(s.groups) != 1 || len(s.rules) != 0 || s.groups[0].group.n != nodes || s.groups[0].root == nil {
		t.Errorf("%d groups and %d planes after all was let go", len(s.groups), len(s.rules))
	}
	if is := whole(t, before, false); is != was {
		t.Error("a snapshot from before has changed")
	}
	for i, p := range m.Snapshot().Service("default", "svc0").Rules.All() {
		old := planes[i].Changes[len(planes[i].Changes)-1]
		if len(p.Changes) != 1 || p.Changes[0] != old || len(p.Members) != 10 || p.Members[3].Changes[0].At != old.At {
			t.Errorf("%s: %+v, before %+v", p.ID, p.Changes, old)
		}
	}
	// And from there on a change goes its way.
	at := end.Add(5 * time.Minute)
	for i := range loop[:len(loop)/2] {
		e := loop[i]
		e.At = at
		if e.ResourceVersion != 0 {
			e.ResourceVersion += 1000
		}
		m.Apply(e)
	}
	m.Apply(advance(at.Add(time.Second)))
	svc := m.Snapshot().Service("default", "svc0")
	if p := svc.Paths[len(svc.Paths)-1]; svc.State != Converged || len(p.Rules) != nodes || p.Status != StatusArrived {
		t.Errorf("%s, path %+v", svc.State, p)
	}
}
