package timeline

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/kconverge/kconverge/collect"
)

// claiming gives the same events with claimed times in them that may say
// anything, and with what agents told of the past among them.
func claiming(t *rapid.T, events []collect.Event) []collect.Event {
	any := func(label string) time.Time {
		return epoch.Add(time.Duration(rapid.Int64Range(-int64(time.Hour), int64(10*time.Second)).Draw(t, label)))
	}
	out := make([]collect.Event, 0, len(events))
	for i, e := range events {
		switch p := e.Payload.(type) {
		case *collect.Service:
			x := *p
			x.Created, x.Written = any("created"), any("written")
			e.Payload = &x
		case *collect.EndpointSlice:
			x := *p
			x.Created, x.Written = any("created"), any("written")
			e.Payload = &x
		case *collect.Endpoints:
			x := *p
			x.Created, x.Written = any("created"), any("written")
			e.Payload = &x
		}
		e.Seq = uint64(i + 1)
		out = append(out, e)
		if rapid.IntRange(0, 3).Draw(t, "told here") != 0 {
			continue
		}
		r := &collect.RulesPast{Node: rapid.SampledFrom(append([]string{"n9"}, worldNodes...)).Draw(t, "past of"), From: any("from"), OneSided: rapid.Bool().Draw(t, "one-sided")}
		for range rapid.IntRange(0, 4).Draw(t, "changes") {
			r.Changes = append(r.Changes, collect.PastChange{At: any("at"), Namespace: "default", Service: rapid.SampledFrom([]string{"web", "gone"}).Draw(t, "service"), Endpoints: rapid.IntRange(0, 9).Draw(t, "endpoints")})
		}
		slices.SortStableFunc(r.Changes, func(a, b collect.PastChange) int { return a.At.Compare(b.At) })
		if rapid.Bool().Draw(t, "gap") {
			from := any("gap from")
			r.Gaps = append(r.Gaps, collect.Gap{From: from, To: from.Add(time.Minute)})
		}
		out = append(out, collect.Event{Seq: e.Seq, At: e.At, Source: collect.RulesSource(r.Node), Payload: r})
	}
	return out
}

// TestClaimedTimesChangeNothing: whatever objects and agents claim of the past,
// steps, lags, paths, episodes, marks, coverage, sources, the watermark and the
// largest disorder are those of what was observed alone.
func TestClaimedTimesChangeNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		w.breaks = true
		for range rapid.IntRange(1, 20).Draw(t, "turns") {
			w.turn()
		}
		plain := append(slices.Clone(w.events), advance(w.now.Add(time.Second)))
		for i := range plain {
			plain[i].Seq = uint64(i + 1)
		}
		all := func(events []collect.Event) (string, *Snapshot) {
			m := New(Options{})
			for _, e := range events {
				m.Apply(e)
			}
			s := m.Snapshot()
			var b strings.Builder
			fmt.Fprintln(&b, s.First, s.MaxInversion, s.Gaps, s.Dropped)
			for _, svc := range s.Services {
				for _, m := range append(slices.Clone(s.Marks), svc.Marks...) {
					fmt.Fprintln(&b, m.At, m.Kind, m.Text)
				}
				fmt.Fprintln(&b, svc.Coverage)
				for _, p := range svc.Paths {
					fmt.Fprintf(&b, "%+v\n", p.Risk)
				}
				official, err := section(s, "official of "+svc.Name)
				if err != nil {
					t.Fatal(err)
				}
				b.WriteString(official)
			}
			return dump(s) + b.String(), s
		}
		want, _ := all(plain)
		got, s := all(claiming(t, plain))
		if got != want {
			t.Fatalf("with claims:\n%s\nwithout:\n%s", got, want)
		}
		for _, p := range append([]*Plane{s.Services[0].Slices}, s.Services[0].Rules.All()...) {
			if p == nil || p.Past == nil {
				continue
			}
			for i, c := range p.Past.Changes {
				if !c.At.Before(p.Past.Until) || i > 0 && c.At.Before(p.Past.Changes[i-1].At) {
					t.Fatalf("%s: a past out of order or not over: %+v", p.ID, p.Past)
				}
			}
			if len(p.Changes) == 0 || p.Past.Until.After(p.Changes[0].At) {
				t.Fatalf("%s: a past until %s, changes %v", p.ID, p.Past.Until, p.Changes)
			}
		}
	})
}

// A recording of what is claimed comes to the same past.
func TestARecordingComesToTheSamePast(t *testing.T) {
	sc := newScenario()
	events, err := sc.parse(`0 list node n1 ready
0 list svc web ip=10.96.0.11 port=80:8080 selector=app:web created=-2h written=-1h
0 list pod a label=app:web ip=10.0.0.1 node=n1 ready
0 list slice web-1 svc=web port=8080 created=-1h written=-30m a/ready
0 list endpoints web created=-1h written=-29m a/ready
1ms synced
2ms rules n1 baseline gen=5 web=10.0.0.1:8080
3ms past n1 from=-20m error=3ms onesided web@-20m=3 web@-1m=1/4 gap=-10m..-9m
1s now`)
	if err != nil {
		t.Fatal(err)
	}
	pasts := func(events []collect.Event) string {
		m := New(Options{})
		for _, e := range events {
			m.Apply(e)
		}
		svc := m.Snapshot().Service("default", "web")
		var b strings.Builder
		for _, p := range append([]*Plane{svc.Slices, svc.Endpoints}, svc.Rules.All()...) {
			if p.Past == nil {
				t.Fatalf("%s has no past", p.ID)
			}
			printPast(&b, p.Past)
		}
		return b.String()
	}
	var buf bytes.Buffer
	w := collect.NewWriter(&buf)
	for _, e := range events {
		if err := w.Write(e); err != nil {
			t.Fatal(err)
		}
	}
	var read []collect.Event
	for r := collect.NewReader(&buf); ; {
		e, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		read = append(read, e)
	}
	if got, want := pasts(read), pasts(events); got != want {
		t.Errorf("from the recording\n%s\nlive\n%s", got, want)
	}
}

// The past goes when it is older than what is kept, and a snapshot that shows it
// stays as it is.
func TestThePastIsNotKeptForEver(t *testing.T) {
	m, sc := New(Options{Retention: 10 * time.Minute}), newScenario()
	feed := func(text string) {
		t.Helper()
		events, err := sc.parse(text)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			m.Apply(e)
		}
	}
	feed(`0 list node n1 ready
0 list svc web ip=10.96.0.11 port=80:8080 selector=app:web
0 list pod a label=app:web ip=10.0.0.1 node=n1 ready
0 list slice web-1 svc=web port=8080 created=-1h written=-30m a/ready
1ms synced
2ms rules n1 baseline gen=5 web=10.0.0.1:8080
3ms past n1 from=-20m web@-20m=3 web@-1m=1
1s now`)
	past := func(s *Snapshot) (out []string) {
		svc := s.Service("default", "web")
		for _, p := range []*Plane{svc.Slices, svc.Rules.All()[0]} {
			var b strings.Builder
			printPast(&b, p.Past)
			out = append(out, b.String())
		}
		return out
	}
	before := m.Snapshot()
	was := past(before)
	if was[0] == "" || was[1] == "" {
		t.Fatalf("no past: %q", was)
	}
	feed("9m now")
	if now := past(m.Snapshot()); !slices.Equal(now, was) {
		t.Errorf("after 9 minutes %q, at first %q", now, was)
	}
	feed("12m now")
	if now := past(m.Snapshot()); now[0] != "" || now[1] != "" {
		t.Errorf("still kept: %q", now)
	}
	if !slices.Equal(past(before), was) {
		t.Error("an old snapshot has changed")
	}
}
