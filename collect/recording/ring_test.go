package recording

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/kconverge/kconverge/collect"
)

// long is a session of n minutes in which a pod's address and a node's rules change
// every second.
func long(minutes int) (out []collect.Event) {
	add := func(e collect.Event, s int) {
		e.Seq, e.At = uint64(len(out)+1), start.Add(time.Duration(s)*time.Second)
		out = append(out, e)
	}
	add(collect.Event{Source: collect.SourceClock, Payload: &collect.Session{Kind: "lab", Name: "lab", Started: start}}, 0)
	pod := func(i int) *collect.Pod {
		return &collect.Pod{Node: "node-1", IPs: []netip.Addr{netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)})}}
	}
	object := func(name string, op collect.Op, s int) collect.Event {
		return collect.Event{Source: collect.SourcePods, Op: op, UID: "u-" + name, ResourceVersion: uint64(s + 1), Object: collect.ObjectKey{Kind: "Pod", Namespace: "default", Name: name}, Payload: pod(s)}
	}
	add(object("web", collect.OpListed, 0), 0)
	add(object("old", collect.OpListed, 0), 0)
	add(collect.Event{Source: collect.SourcePods, Payload: &collect.SourceState{State: collect.SourceSynced}}, 0)
	port := func(name string, i int) collect.RulePort {
		return collect.RulePort{RulePortKey: collect.RulePortKey{Namespace: "default", Service: name, Protocol: collect.TCP, Family: collect.IPv4, Policy: collect.PolicyCluster}, Endpoints: []netip.AddrPort{netip.AddrPortFrom(pod(i).IPs[0], 80)}}
	}
	rules := collect.RulesSource("node-1")
	add(collect.Event{Source: rules, Payload: &collect.Rules{Node: "node-1", Generation: 1, Baseline: true, Ports: []collect.RulePort{port("web", 0), port("old", 0)}}}, 0)
	add(object("old", collect.OpDeleted, 1), 1)
	gone := port("old", 0)
	gone.Endpoints = nil
	add(collect.Event{Source: rules, Payload: &collect.Rules{Node: "node-1", Generation: 2, Ports: []collect.RulePort{gone}}}, 1)
	for s := 2; s < 60*minutes; s++ {
		add(object("web", collect.OpModified, s), s)
		add(collect.Event{Source: rules, Payload: &collect.Rules{Node: "node-1", Generation: uint32(s + 1), Ports: []collect.RulePort{port("web", s)}}}, s)
	}
	return out
}

func write1(t *testing.T, r *Ring, events []collect.Event) {
	t.Helper()
	for _, e := range events {
		if err := r.Write(e); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTheLastMinutesCanBeSavedAfterwards(t *testing.T) {
	dir := t.TempDir()
	for _, minutes := range []int{2, 7, 61} {
		events := long(minutes)
		r, err := NewRing(dir, start.Add(time.Duration(minutes)*time.Second))
		if err != nil {
			t.Fatal(err)
		}
		write1(t, r, events)
		path := filepath.Join(dir, fmt.Sprint("saved", minutes))
		if err := r.Save(path, Options{}); err != nil {
			t.Fatal(err)
		}
		if files := ringsIn(dir)["ring-"+r.id]; len(files) > ringParts {
			t.Errorf("%d minutes keep %q", minutes, files)
		}
		f := opened(t, path)
		got := all(t, f.Read(0))
		// The end is all there, and from the beginning on nothing is missing.
		first := slices.IndexFunc(got, func(e collect.Event) bool { return e.Op == collect.OpModified })
		kept := got[first:]
		if want := events[len(events)-len(kept):]; kept[0].Seq != want[0].Seq || kept[len(kept)-1].Seq != want[len(want)-1].Seq {
			t.Fatalf("%d minutes: events %d to %d are kept, want %d to %d", minutes, kept[0].Seq, kept[len(kept)-1].Seq, want[0].Seq, want[len(want)-1].Seq)
		}
		if span := kept[len(kept)-1].At.Sub(kept[0].At); minutes > 20 && (span < 15*time.Minute || span > 21*time.Minute) || minutes < 15 && span < time.Duration(minutes)*time.Minute-5*time.Second {
			t.Errorf("%d minutes: %s are kept", minutes, span)
		}
		// What stood before is told once, as no news.
		if minutes == 61 {
			pods, ports := 0, 0
			for _, e := range got[:first] {
				switch p := e.Payload.(type) {
				case *collect.Pod:
					if pods++; e.Object.Name != "web" || e.Op != collect.OpListed || p.IPs[0] != kept[0].Payload.(*collect.Pod).IPs[0].Prev() {
						t.Errorf("%+v stood before %+v", p, kept[0].Payload)
					}
				case *collect.Rules:
					if ports += len(p.Ports); !p.Baseline || uint64(p.Generation)+1 != kept[0].ResourceVersion {
						t.Errorf("rules of generation %d stood before generation %d", p.Generation, kept[0].ResourceVersion)
					}
				}
			}
			if pods != 1 || ports != 1 {
				t.Errorf("%d pods and %d ports stood", pods, ports)
			}
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTheLastSessionIsFoundAndOlderOnesAreForgotten(t *testing.T) {
	dir := t.TempDir()
	out := filepath.Join(dir, "out")
	if err := SaveLast(dir, out, Options{}); !errors.Is(err, ErrNoSession) {
		t.Errorf("without any session: %v", err)
	}
	running, err := NewRing(dir, start)
	if err != nil {
		t.Fatal(err)
	}
	write1(t, running, long(1))
	for i := 1; i < 11; i++ {
		r, err := NewRing(dir, start.Add(time.Duration(i)*time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		es := long(1)
		es[0].Payload = &collect.Session{Kind: "lab", Name: fmt.Sprint("session ", i)}
		write1(t, r, es)
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(ringsIn(dir)); n != ringSessions+1 { // with the one that still runs
		t.Errorf("%d sessions are kept", n)
	}
	if err := SaveLast(dir, out, Options{}); err != nil {
		t.Fatal(err)
	}
	if f := opened(t, out); f.Session.Name != "session 10" {
		t.Errorf("the last session is %q", f.Session.Name)
	}
	// One that could write nothing, for instance for want of space, is none.
	if err := os.WriteFile(filepath.Join(dir, "ring-20270101T000000.000-1-0001.kconverge"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	again := filepath.Join(dir, "again")
	if err := SaveLast(dir, again, Options{}); err != nil {
		t.Fatal(err)
	}
	if f := opened(t, again); f.Session.Name != "session 10" {
		t.Errorf("beside an empty one the last session is %q", f.Session.Name)
	}
	// The first one was started before all others, and ends after them.
	late := long(2)
	write1(t, running, late[len(late)/2:])
	beside := filepath.Join(dir, "beside")
	if err := SaveLast(dir, beside, Options{}); err != nil {
		t.Fatal(err)
	}
	if f := opened(t, beside); f.Session.Name != "session 10" {
		t.Errorf("beside one that goes on the last session is %q", f.Session.Name)
	}
	if err := running.Close(); err != nil {
		t.Fatal(err)
	}
	first := filepath.Join(dir, "first")
	if err := SaveLast(dir, first, Options{}); err != nil {
		t.Fatal(err)
	}
	if f := opened(t, first); f.Session.Name != "lab" {
		t.Errorf("the session that ended last is %q", f.Session.Name)
	}
}
