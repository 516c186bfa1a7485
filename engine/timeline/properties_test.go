package timeline

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/engine/desired"
)

// truth says how each plane of Service web stands in the world, the slow and
// obvious way: from everything, at once, without memory.
func (w *world) truth() map[string]string {
	out := map[string]string{}
	say := func(plane string, want, have map[string]string) {
		var diffs []string
		for k := range want {
			if have[k] != want[k] {
				diffs = append(diffs, k)
			}
		}
		for k := range have {
			if want[k] == "" {
				diffs = append(diffs, k)
			}
		}
		slices.Sort(diffs)
		routable := func(m map[string]string) (n int) {
			for _, v := range m {
				if strings.Contains(v, "routable") {
					n++
				}
			}
			return n
		}
		out[plane] = fmt.Sprintf("want %d have %d differ %v", routable(want), routable(have), diffs)
	}
	text := func(ready, serving, terminating bool, port int32) string {
		s := fmt.Sprintf("%v %v %v %d", ready, serving, terminating, port)
		if ready {
			s += " routable"
		}
		return s
	}
	want, have := map[string]string{}, map[string]string{}
	svc := w.svcs["web"]
	if svc != nil {
		for _, e := range desired.Slices(svc, w.refs()) {
			want[e.Address.String()+" "+e.PodUID] = text(e.Ready, e.Serving, e.Terminating, e.Ports[0].Port)
		}
	}
	if sl := w.slices["web"]; sl != nil {
		for _, e := range sl.Endpoints {
			have[e.Address.String()+" "+e.PodUID] = text(e.Ready, e.Serving, e.Terminating, sl.Ports[0].Port)
		}
	}
	say("slices", want, have)
	for i, node := range worldNodes {
		fold := func(ports []collect.RulePort) map[string]string {
			m := map[string]string{}
			for _, p := range ports {
				for _, ep := range p.Endpoints {
					m[ep.Addr().String()] += fmt.Sprintf("routable %s %d;", p.Policy, ep.Port())
				}
			}
			return m
		}
		var wanted []collect.RulePort
		if svc != nil {
			var all []*collect.EndpointSlice
			if sl := w.slices["web"]; sl != nil {
				all = append(all, sl)
			}
			wanted = desired.Rules(desired.ServiceRef{Namespace: "default", Name: "web", Service: svc}, all, desired.NodeRef{Name: node, Zone: fmt.Sprintf("z%d", i+1)})
		}
		had := slices.SortedFunc(maps.Values(w.rules[node]), func(a, b collect.RulePort) int { return a.RulePortKey.Compare(b.RulePortKey) })
		say("rules@"+node, fold(wanted), fold(had))
	}
	return out
}

// told says the same by the model's word.
func told(s *Snapshot) map[string]string {
	svc := s.Service("default", "web")
	out := map[string]string{}
	diffs := map[string][]string{}
	for _, d := range svc.Differences {
		if (d.Endpoint.EndpointID == EndpointID{}) {
			continue
		}
		k := d.Endpoint.IP.String()
		if d.Plane.Kind == PlaneSlices {
			k += " " + d.Endpoint.UID
		}
		diffs[d.Plane.String()] = append(diffs[d.Plane.String()], k)
	}
	for _, p := range append([]*Plane{svc.Slices}, svc.Rules.All()...) {
		c, _ := p.At(s.Now)
		d := diffs[p.ID.String()]
		slices.Sort(d)
		out[p.ID.String()] = fmt.Sprintf("want %d have %d differ %v", c.Want, c.Have, d)
	}
	return out
}

// TestPlanesMatchAReferenceAtEveryStep: after each turn of a random world, and
// once the reordering window has passed, every plane's counts and differences
// are those of a reference that looks at everything anew.
func TestPlanesMatchAReferenceAtEveryStep(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, m := newWorld(t), New(Options{})
		w.breaks = true
		fed := 0
		for range rapid.IntRange(1, 25).Draw(t, "turns") {
			w.turn()
			for ; fed < len(w.events); fed++ {
				m.Apply(w.events[fed])
			}
			w.now = w.now.Add(31 * time.Millisecond)
			m.Apply(advance(w.now))
			s := m.Snapshot()
			if w.broken != "" {
				continue // what is not told cannot be known
			}
			if got, want := told(s), w.truth(); !reflect.DeepEqual(got, want) {
				t.Fatalf("after %v of %d events\n got %v\nwant %v", w.events[fed-1].Payload.Type(), fed, got, want)
			}
			consistent(t, s)
		}
	})
}

// TestOnceAllHaveCaughtUpNothingStaysOpen: when the watches are up, the
// controller has written what it should and every node has synced, the Service
// is converged and no path is open.
func TestOnceAllHaveCaughtUpNothingStaysOpen(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		w.breaks = true
		for range rapid.IntRange(1, 25).Draw(t, "turns") {
			w.turn()
		}
		w.exact = true
		w.now = w.now.Add(100 * time.Millisecond)
		if w.broken != "" {
			w.relist()
		}
		if w.svcs["web"] == nil && w.slices["web"] != nil { // garbage collection
			w.kube(collect.SourceEndpointSlices, "EndpointSlice", "web-1", "u-slice", collect.OpDeleted, w.slices["web"])
			delete(w.slices, "web")
		}
		w.writeSlice("web", collect.OpModified, true)
		w.now = w.now.Add(100 * time.Millisecond)
		for _, n := range worldNodes {
			w.sync(n)
		}
		m := New(Options{})
		for _, e := range w.delivered(29*time.Millisecond, "late by") {
			m.Apply(e)
		}
		m.Apply(advance(w.now.Add(time.Second)))
		s := m.Snapshot()
		svc := s.Service("default", "web")
		if svc.State != Converged {
			t.Fatalf("%s: %+v", svc.State, svc.Differences)
		}
		for _, p := range svc.Paths {
			if p.Status == StatusOpen {
				t.Fatalf("path %s is open: %+v", p.ID, p)
			}
		}
		consistent(t, s)
	})
}

// consistent checks what must hold of any snapshot.
func consistent(t *rapid.T, s *Snapshot) {
	svc := s.Service("default", "web")
	differ := map[string]bool{}
	counted := 0
	for _, d := range svc.Differences {
		differ[fmt.Sprint(d.Plane, d.Endpoint.EndpointID)] = true
		if d.Plane.Kind != PlaneEndpoints {
			counted++
		}
	}
	if (svc.State == Converged) != (counted == 0) {
		t.Fatalf("state %s with %d differences", svc.State, counted)
	}
	if n := len(svc.Episodes); counted > 0 && (n == 0 || !svc.Episodes[n-1].End.IsZero()) || counted == 0 && n > 0 && svc.Episodes[n-1].End.IsZero() {
		t.Fatalf("%d differences, episodes %v", counted, svc.Episodes)
	}
	for _, p := range svc.Paths {
		hops := slices.Clone(p.Rules)
		if p.Slice != nil {
			hops = append(hops, *p.Slice)
		}
		open := false
		for _, h := range hops {
			switch h.Status {
			case StatusOpen:
				open = true
				if !differ[fmt.Sprint(h.Plane, p.Endpoint.EndpointID)] {
					t.Fatalf("%s %s of %v is open in %s, where nothing differs", p.Op, p.Cause, p.Endpoint.EndpointID, h.Plane)
				}
			case StatusArrived:
				if h.At.IsZero() || h.Lag != h.At.Sub(p.Origin.At) || h.FromStep != h.At.Sub(h.Step) {
					t.Fatalf("arrived hop %+v of a path from %v", h, p.Origin)
				}
			default:
				if !h.At.IsZero() {
					t.Fatalf("hop %+v has an arrival", h)
				}
			}
		}
		if open != (p.Status == StatusOpen) {
			t.Fatalf("path %s is %s with hops %+v", p.ID, p.Status, hops)
		}
	}
	for _, p := range append([]*Plane{svc.Slices}, svc.Rules.All()...) {
		for i := 1; i < len(p.Changes); i++ {
			if !p.Changes[i].At.After(p.Changes[i-1].At) {
				t.Fatalf("%s changes out of order: %v", p.ID, p.Changes)
			}
		}
		c, _ := p.At(s.Now)
		var want, have, off int
		for i := range p.Members {
			x := p.Members[i].At(s.Now)
			want, have = want+count(x.Want), have+count(x.Have)
			off += count(!x.Agrees)
		}
		front := count(differ[fmt.Sprint(p.ID, EndpointID{})])
		if want != c.Want || have != c.Have || off+front != c.Missing+c.Stale+c.Unexpected+c.Changed {
			t.Fatalf("%s: members want %d have %d off %d, plane %+v", p.ID, want, have, off, c)
		}
	}
}

func count(b bool) int {
	if b {
		return 1
	}
	return 0
}

// TestSnapshotsAreDeterministicAndStay: the same events come to the same
// snapshot, whether or not others were taken on the way, and a snapshot does not
// change after it was handed out.
func TestSnapshotsAreDeterministicAndStay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		for range rapid.IntRange(1, 15).Draw(t, "turns") {
			w.turn()
		}
		events := append(w.delivered(20*time.Millisecond, "late by"), advance(w.now.Add(time.Second)))
		a, b := New(Options{}), New(Options{})
		var taken []*Snapshot
		var texts []string
		for i, e := range events {
			a.Apply(e)
			b.Apply(e)
			if s := a.Snapshot(); i%4 == 0 || i == len(events)-1 {
				taken, texts = append(taken, s), append(texts, dump(s))
			}
		}
		if got, want := dump(b.Snapshot()), texts[len(texts)-1]; got != want {
			t.Fatalf("one snapshot only:\n%s\nmany:\n%s", got, want)
		}
		for i, s := range taken {
			if now := dump(s); now != texts[i] {
				t.Fatalf("snapshot %d was\n%s\nand has become\n%s", i, texts[i], now)
			}
		}
	})
}

// TestHistoryIsNotRewritten: what a plane's lane showed stays, but for its last
// moment, while events go on.
func TestHistoryIsNotRewritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		for range rapid.IntRange(1, 20).Draw(t, "turns") {
			w.turn()
		}
		m := New(Options{})
		before := map[PlaneID][]PlaneChange{}
		for _, e := range append(w.events, advance(w.now.Add(time.Second))) {
			m.Apply(e)
			svc := m.Snapshot().Service("default", "web")
			if svc == nil {
				continue
			}
			for _, p := range append([]*Plane{svc.Slices}, svc.Rules.All()...) {
				was := before[p.ID]
				if n := len(was) - 1; n > 0 && !slices.Equal(was[:n], p.Changes[:min(n, len(p.Changes))]) {
					t.Fatalf("%s was %v, is %v", p.ID, was, p.Changes)
				}
				before[p.ID] = p.Changes
			}
		}
	})
}

// dump prints everything that a snapshot says.
func dump(s *Snapshot) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v %v %v %v %v\n", s.Seq, s.Now, s.Watermark, s.Nodes, s.Sources)
	for _, svc := range s.Services {
		for _, name := range []string{"state", "planes", "paths", "differences", "wanted", "episodes", "pods", "coverage", "arrivals", "lane slices", "lane rules@n1", "lane rules@n2"} {
			text, err := section(s, name+" of "+svc.Name)
			if err != nil {
				text = err.Error()
			}
			b.WriteString(text)
		}
		for _, p := range svc.Paths {
			fmt.Fprintln(&b, p.ID, p.Status)
		}
		for _, p := range append([]*Plane{svc.Slices}, svc.Rules.All()...) {
			fmt.Fprintln(&b, p.Members)
		}
	}
	return b.String()
}
