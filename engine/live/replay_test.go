package live_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/collect/recording"
	"github.com/kconverge/kconverge/engine/live"
	"github.com/kconverge/kconverge/engine/report"
	"github.com/kconverge/kconverge/engine/timeline"
)

var begin = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// flapping is a session of a Service with four pods, one of which becomes ready or
// unready every 20 ms; the slice and two nodes follow.
func flapping(changes int) []collect.Event {
	var out []collect.Event
	at, rv, seq := begin, uint64(0), uint64(0)
	add := func(e collect.Event) {
		seq++
		e.Seq, e.At = seq, at
		out = append(out, e)
	}
	kube := func(src collect.SourceID, kind, name string, op collect.Op, p collect.Payload) {
		rv++
		add(collect.Event{Source: src, Op: op, UID: "u-" + name, ResourceVersion: rv, Object: collect.ObjectKey{Kind: kind, Namespace: "default", Name: name}, Payload: p})
	}
	add(collect.Event{Source: collect.SourceClock, Payload: &collect.Session{Kind: "lab", Name: "lab", Started: at, NodesExpected: true}})
	ready := [4]bool{true, true, true, true}
	ip := func(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 244, 0, byte(i + 1)}) }
	pod := func(i int) *collect.Pod {
		return &collect.Pod{Labels: map[string]string{"app": "web"}, Node: "node-1", IPs: []netip.Addr{ip(i)}, Phase: "Running", Ready: &collect.Condition{Status: ready[i], Since: at.Truncate(time.Second)}}
	}
	slice := func() *collect.EndpointSlice {
		s := &collect.EndpointSlice{Service: "web", ManagedBy: "endpointslice-controller.k8s.io", Family: collect.IPv4, Ports: []collect.SlicePort{{Protocol: collect.TCP, Port: 8080}}}
		for i, r := range ready {
			s.Endpoints = append(s.Endpoints, collect.SliceEndpoint{Address: ip(i), Ready: r, Serving: r, Node: "node-1", PodName: fmt.Sprint("web-", i), PodUID: fmt.Sprint("u-web-", i)})
		}
		return s
	}
	cluster := netip.MustParseAddr("10.96.0.10")
	rules := func(node string, gen uint32, baseline bool) {
		p := collect.RulePort{RulePortKey: collect.RulePortKey{Namespace: "default", Service: "web", Protocol: collect.TCP, Family: collect.IPv4, Policy: collect.PolicyCluster},
			Frontends: []collect.Frontend{{Kind: collect.FrontendClusterIP, Addr: netip.AddrPortFrom(cluster, 80)}}}
		for i, r := range ready {
			if r {
				p.Endpoints = append(p.Endpoints, netip.AddrPortFrom(ip(i), 8080))
			}
		}
		add(collect.Event{Source: collect.RulesSource(node), Payload: &collect.Rules{Node: node, Generation: gen, Baseline: baseline, Layout: "kube-proxy-nftables", Ports: []collect.RulePort{p}}})
	}
	for _, n := range []string{"node-1", "node-2"} {
		kube(collect.SourceNodes, "Node", n, collect.OpListed, &collect.Node{Ready: &collect.Condition{Status: true}})
	}
	kube(collect.SourceServices, "Service", "web", collect.OpListed, &collect.Service{Kind: "ClusterIP", Selector: map[string]string{"app": "web"}, ClusterIPs: []netip.Addr{cluster}, Ports: []collect.ServicePort{{Protocol: collect.TCP, Port: 80, Target: 8080}}})
	for i := range ready {
		kube(collect.SourcePods, "Pod", fmt.Sprint("web-", i), collect.OpListed, pod(i))
	}
	kube(collect.SourceEndpointSlices, "EndpointSlice", "web-abc", collect.OpListed, slice())
	for _, s := range []collect.SourceID{collect.SourcePods, collect.SourceServices, collect.SourceEndpointSlices, collect.SourceNodes} {
		add(collect.Event{Source: s, Payload: &collect.SourceState{State: collect.SourceSynced}})
	}
	rules("node-1", 1, true)
	rules("node-2", 1, true)
	rnd := rand.New(rand.NewPCG(1, 2))
	for n := range changes {
		at = at.Add(20 * time.Millisecond)
		i := rnd.IntN(4)
		ready[i] = !ready[i]
		kube(collect.SourcePods, "Pod", fmt.Sprint("web-", i), collect.OpModified, pod(i))
		at = at.Add(2 * time.Millisecond)
		kube(collect.SourceEndpointSlices, "EndpointSlice", "web-abc", collect.OpModified, slice())
		at = at.Add(3 * time.Millisecond)
		rules("node-1", uint32(n+2), false)
		at = at.Add(time.Duration(rnd.IntN(4)) * time.Millisecond)
		rules("node-2", uint32(n+2), false)
		if n%40 == 0 {
			add(collect.Event{Source: collect.SourceClock, Payload: &collect.Advance{}})
		}
	}
	at = at.Add(time.Second)
	add(collect.Event{Source: collect.SourceClock, Payload: &collect.Advance{}})
	return out
}

// recordedSession writes the events to a closed recording and opens it.
func recordedSession(t testing.TB, events []collect.Event, every int) *recording.File {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a.kconverge")
	w, err := recording.Create(path, recording.Options{CheckpointEvery: every, Model: func() recording.Model { return live.NewModel(timeline.Options{}) }})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		if err := w.Write(e); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := recording.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func text(t testing.TB, s *timeline.Snapshot) string {
	t.Helper()
	b, err := json.Marshal(report.Build(s, nil))
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(s.Seq, s.Now, string(b))
}

// after is what a model knows after the events for which in holds, from the start.
func after(t testing.TB, events []collect.Event, in func(collect.Event) bool) string {
	t.Helper()
	m := live.NewModel(timeline.Options{})
	for _, e := range events {
		if !in(e) {
			break
		}
		m.Apply(e)
	}
	return text(t, m.Snapshot())
}

// TestAReplayShowsWhatPlayingFromTheStartShows: at whatever moment, in whatever order
// they are asked for, and when it steps and plays.
func TestAReplayShowsWhatPlayingFromTheStartShows(t *testing.T) {
	events := flapping(1_200)
	file := recordedSession(t, events, 1_000)
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		r := live.NewReplay(file)
		ended := make(chan error, 1)
		go func() { ended <- r.Run(ctx) }()
		shows := func(what string, in func(collect.Event) bool) {
			t.Helper()
			synctest.Wait()
			if got, want := text(t, r.Latest()), after(t, events, in); got != want {
				t.Fatalf("%s: shows\n%.400s\nwant\n%.400s", what, got, want)
			}
		}
		shows("at the end", func(collect.Event) bool { return true })
		rnd := rand.New(rand.NewPCG(3, 4))
		to := file.To
		for range 8 {
			at := begin.Add(time.Duration(rnd.Int64N(int64(to.Sub(begin)))))
			r.Seek(at)
			shows(at.String(), func(e collect.Event) bool { return !e.At.After(at) })
		}
		// Back and forth by events that are not the passing of time.
		seq := r.Status().Event
		r.Step(-1)
		shows("one event back", func(e collect.Event) bool { return e.Seq < seq })
		r.Step(1)
		shows("and on again", func(e collect.Event) bool { return e.Seq <= seq })
		r.Step(-100)
		synctest.Wait()
		earlier := r.Status().Event
		shows("a hundred back", func(e collect.Event) bool { return e.Seq <= earlier })
		if earlier > seq-100 || earlier < seq-110 {
			t.Errorf("a hundred events before %d is %d", seq, earlier)
		}
		// Two seconds at five times the speed are ten seconds of it.
		from := r.Status().At
		r.SetSpeed(5)
		r.Play()
		time.Sleep(2 * time.Second) // in the bubble
		r.Pause()
		synctest.Wait()
		s := r.Status()
		if d := s.At.Sub(from); s.Playing || d < 9900*time.Millisecond || d > 10100*time.Millisecond {
			t.Errorf("two seconds at 5x showed %s", d)
		}
		shows("having played", func(e collect.Event) bool { return e.Seq <= s.Event })
		time.Sleep(time.Minute)
		synctest.Wait()
		if now := r.Status().At; !now.Equal(s.At) {
			t.Errorf("it goes on while it stands still: %s", now.Sub(s.At))
		}
		// Playing from the end begins anew, and stops at the end.
		r.Seek(to)
		r.SetSpeed(1000)
		r.Play()
		time.Sleep(10 * time.Millisecond)
		synctest.Wait()
		if s := r.Status(); !s.Playing || s.At.After(begin.Add(25*time.Second)) {
			t.Errorf("playing from the end is at %s", s.At)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if s := r.Status(); s.Playing || !s.At.Equal(to) {
			t.Errorf("in the end it plays %v at %s", s.Playing, s.At)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		r.Seek(begin) // nobody hears it, and nobody waits
	})
}

// TestAReplayGoesOnAfterDamage: also where the part that cannot be read follows a
// checkpoint. What changed there is known to have changed since then.
func TestAReplayGoesOnAfterDamage(t *testing.T) {
	whole := recordedSession(t, flapping(1_200), 1_000)
	b, err := os.ReadFile(whole.Path())
	if err != nil {
		t.Fatal(err)
	}
	state, frame := whole.Checkpoint(whole.From.Add(whole.To.Sub(whole.From) / 2))
	if state == nil || frame+2 > len(whole.Frames) {
		t.Fatalf("no checkpoint in the middle of %d frames", len(whole.Frames))
	}
	bad := whole.Frames[frame]
	b[bad.Offset+bad.Size/2] ^= 0xff
	path := filepath.Join(t.TempDir(), "damaged")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := recording.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		r := live.NewReplay(file)
		ended := make(chan error, 1)
		go func() { ended <- r.Run(ctx) }()
		at := whole.Frames[frame+1].At
		r.Seek(at.Add(time.Second))
		synctest.Wait()
		s := r.Latest()
		if st := r.Status(); st.Err != nil || st.At.Before(at) {
			t.Errorf("%s beyond the damage it is at %s: %v", time.Second, st.At, st.Err)
		}
		if len(s.Gaps) == 0 {
			t.Error("no gap is shown")
		}
		for _, g := range s.Gaps {
			if g.From.After(bad.At) || !g.To.IsZero() {
				t.Errorf("gap %+v, what is damaged begins at %s", g, bad.At)
			}
		}
		for _, p := range s.Service("default", "web").Paths {
			if p.Slice != nil && p.Slice.At.Sub(p.Origin.At) > time.Second && p.Slice.Width() == 0 {
				t.Errorf("path %s: a lag of %s over what cannot be read is stated as it is", p.ID, p.Slice.Lag)
			}
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// BenchmarkSeek shows random moments of a recording of many events.
func BenchmarkSeek(b *testing.B) {
	file := recordedSession(b, flapping(50_000), 0)
	r := live.NewReplay(file)
	go func() { _ = r.Run(b.Context()) }()
	rnd := rand.New(rand.NewPCG(3, 4))
	feed, cancel := r.Subscribe()
	defer cancel()
	<-feed
	b.ReportMetric(float64(file.Events), "events")
	for b.Loop() {
		r.Seek(file.From.Add(time.Duration(rnd.Int64N(int64(file.To.Sub(file.From))))))
		<-feed
	}
}
