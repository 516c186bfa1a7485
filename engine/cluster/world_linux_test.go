package cluster_test

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/collect/kube"
	"github.com/kconverge/kconverge/collect/nodelog"
	"github.com/kconverge/kconverge/engine/cluster"
	"github.com/kconverge/kconverge/engine/live"
	"github.com/kconverge/kconverge/engine/timeline"
)

// patience is how long a condition is awaited: far beyond what anything takes.
const patience = time.Minute

func TestMain(m *testing.M) {
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	os.Exit(m.Run())
}

// world is a real cluster, observed as `kconverge watch --node-log …` does: by a
// kubeconfig and the agents' lines.
type world struct {
	*testing.T
	mode    string
	cluster *cluster.Cluster
	client  kubernetes.Interface
	watch   *kube.Source
	rt      *live.Runtime
	history *history
	checked map[string]bool // paths
	// families is how many a Service has.
	families int
	// vague counts readings between two looks at legacy iptables that were as neither.
	vague int
}

// programs builds what is missing of Kubernetes' programs and gives their folder.
func programs(t *testing.T, more ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "../../testdata/cluster/build.sh",
		append(more, "etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy", "kube-proxy-1.34", "kwok")...)
	cmd.Stderr = os.Stderr // building takes minutes: say so
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("build Kubernetes' programs: %v", err)
	}
	return strings.TrimSpace(string(out))
}

// built builds a program of this module and gives its path.
func built(t *testing.T, folder string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), filepath.Base(folder))
	// As make build does, so that most comes from its cache.
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-ldflags=-s -w", "-o", path, folder)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", folder, err, out)
	}
	return path
}

func agentProgram(t *testing.T) string { return built(t, "../../cmd/kconverge-agent") }

// lastLines keeps the end of what the programs print, for failures.
type lastLines struct {
	mu   sync.Mutex
	list []string
}

// Write implements io.Writer.
func (l *lastLines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, string(p))
	if over := len(l.list) - 60; over > 0 {
		l.list = slices.Delete(l.list, 0, over)
	}
	return len(p), nil
}

func (l *lastLines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.list, "")
}

// allowed skips a test that cannot run here.
func allowed(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("makes network namespaces for real kube-proxies: needs root")
	}
	if testing.Short() {
		t.Skip("-short: building Kubernetes takes minutes the first time")
	}
}

func start(t *testing.T, mode string, count int, audit ...string) *world {
	t.Helper()
	allowed(t)
	w := begin(t, cluster.Options{Bin: programs(t), Agent: agentProgram(t), Mode: mode, Nodes: count, Audit: audit})
	w.observe()
	return w
}

// begin starts a cluster that nobody observes yet.
func begin(t *testing.T, o cluster.Options) *world {
	t.Helper()
	log := &lastLines{}
	o.AgentArgs, o.Dir, o.Log = []string{"--heartbeat", "500ms", "--keyframe", "5s"}, t.TempDir(), log
	c, err := cluster.Start(t.Context(), o)
	if err != nil {
		t.Fatalf("%v\n%s", err, log)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the last lines of the programs:\n%s", log)
		}
		if err := c.Stop(); err != nil {
			t.Errorf("stop: %v", err)
		}
	})
	w := &world{T: t, mode: o.Mode, cluster: c, history: newHistory(), checked: map[string]bool{}, families: 1}
	if c.DualStack() {
		w.families = 2
	}
	if w.client, err = kubernetes.NewForConfig(c.Config()); err != nil {
		t.Fatal(err)
	}
	return w
}

// observe starts the model and waits until it knows every node's rules: those of
// the simulated ones from files, others from where more sources take them.
func (w *world) observe(more ...func(*nodelog.Causes) collect.Source) {
	w.Helper()
	var err error
	if w.watch, err = kube.New(kube.Options{Config: w.cluster.Config(), VouchEvery: time.Second}); err != nil {
		w.Fatal(err)
	}
	causes := nodelog.NewCauses()
	sources := []collect.Source{overheard{w.watch, causes}}
	for _, add := range more {
		sources = append(sources, add(causes))
	}
	for _, n := range w.cluster.Simulated() {
		sources = append(sources, nodelog.NewFile(nodelog.FileOptions{Node: n.Name(), Path: w.cluster.Lines(n.Name()), Causes: causes}))
	}
	w.rt = live.New(live.Options{Recorders: []live.Recorder{w.history}, Session: collect.Session{
		Kind: "cluster", Name: "test", Rules: "agents' lines", NodesExpected: true,
		Needs: []collect.SourceID{collect.SourcePods, collect.SourceServices, collect.SourceEndpointSlices, collect.SourceNodes},
	}})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.rt.Run(ctx, sources...) }()
	w.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			w.Errorf("watching ended with %v", err)
		}
	})
	w.until("every source to have synced", func(s *timeline.Snapshot) bool {
		rules := 0
		for _, src := range s.Sources {
			if strings.HasPrefix(string(src.ID), collect.SourceRulesPrefix) && src.State == collect.SourceSynced {
				rules++
			}
		}
		return rules == len(w.cluster.Nodes()) && !s.Watermark.IsZero()
	})
}

// overheard is the watch of a cluster to which the agents' readers listen, as
// kconverge's own commands do it.
type overheard struct {
	*kube.Source
	by collect.Sink
}

// Run implements collect.Source.
func (o overheard) Run(ctx context.Context, sink collect.Sink) error {
	return o.Source.Run(ctx, collect.Multi{sink, o.by})
}

// until waits for a snapshot that satisfies cond and returns it.
func (w *world) until(what string, cond func(*timeline.Snapshot) bool) *timeline.Snapshot {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), patience)
	defer cancel()
	s, _, err := w.rt.Wait(ctx, func(s *timeline.Snapshot) (bool, string) { return cond(s), what })
	if err != nil {
		w.Fatalf("waiting for %s: %v\n%s", what, err, describe(s))
	}
	return s
}

// settled waits until every workload is done and every Service has converged.
func (w *world) settled() *timeline.Snapshot {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), patience)
	defer cancel()
	s, why, err := w.rt.Wait(ctx, live.Convergence{Settled: true, After: time.Now(), Ask: w.watch.Vouch}.Condition())
	if err != nil {
		w.Fatalf("waiting for %s: %v\n%s", why, err, describe(s))
	}
	return s
}

func describe(s *timeline.Snapshot) string {
	if s == nil {
		return "nothing was seen"
	}
	var b strings.Builder
	for _, svc := range s.Services {
		fmt.Fprintf(&b, "%s/%s %s %+v\n", svc.Namespace, svc.Name, svc.State, svc.Differences)
	}
	for _, src := range s.Sources {
		fmt.Fprintf(&b, "%s %s %s vouched %s\n", src.ID, src.State, src.Detail, src.Vouched)
	}
	return b.String()
}

// known waits until the agents' lines have told of a reading's generation, and
// compares what they came to with the reading, in every detail. It returns the
// place of that state in the history, or -1 when no single state is known to have been
// in force.
func (w *world) known(what string, r reading) (place int) {
	w.Helper()
	if w.legacy(r.node) {
		return w.knownBetween(what, r)
	}
	for {
		place, ok, moved := w.history.at(r.node, r.gen)
		if ok {
			s, _ := w.history.state(r.node, place)
			want, got := lines(r.ports), lines(s.list())
			if !slices.Equal(want, got) {
				w.Errorf("%s: %s in generation %d (told in %d):\nread      %s\nfollowed  %s", what, r.node, r.gen, s.gen, strings.Join(want, "\n          "), strings.Join(got, "\n          "))
			}
			return place
		}
		select {
		case <-moved:
		case <-time.After(patience):
			w.Fatalf("%s: nobody told of generation %d of %s", what, r.gen, r.node)
		}
	}
}

// knownBetween is known for rules that are looked at from time to time: a change lies
// somewhere between two looks. What was read while one state alone can have been in
// force must be that; else each family must be as one of those that can, or as
// something between two of them, which nobody can tell (vague).
func (w *world) knownBetween(what string, r reading) (place int) {
	w.Helper()
	for {
		place, list, moved := w.history.during(r.node, r.from, r.to)
		if moved != nil {
			select {
			case <-moved:
				continue
			case <-time.After(patience):
				w.Fatalf("%s: nobody told what %s had from %s to %s", what, r.node, r.from, r.to)
			}
		}
		if len(list) == 1 {
			if want, got := lines(r.ports), lines(list[0].list()); !slices.Equal(want, got) {
				w.Errorf("%s: %s from %s to %s (told at %s):\nread      %s\nfollowed  %s", what, r.node, r.from, r.to, list[0].at, strings.Join(want, "\n          "), strings.Join(got, "\n          "))
			}
			return place
		}
		for _, f := range []collect.Family{collect.IPv4, collect.IPv6} {
			want := lines(ofFamily(f, r.ports))
			if !slices.ContainsFunc(list, func(s state) bool { return slices.Equal(want, lines(ofFamily(f, s.list()))) }) {
				w.vague++
			}
		}
		return -1
	}
}

// modelled compares a snapshot's view of a node, while a state of the history was
// in force, with a reading of the same generation: at the state's first moment, or
// else after the disorder between the sources that the snapshot itself states. A
// watch may bring a slice after kube-proxy has acted on it, and what the model shows
// of a moment is as exact as that.
func (w *world) modelled(what string, s *timeline.Snapshot, r reading, place int) {
	w.Helper()
	st, _ := w.history.state(r.node, place)
	want := addresses(r.ports)
	first := had(s, r.node, st.at)
	if maps.EqualFunc(want, first, slices.Equal[[]netip.Addr]) {
		return
	}
	end := st.at.Add(s.MaxInversion + time.Millisecond)
	if next := w.history.until(r.node, place); !next.IsZero() && next.Before(end) {
		end = next
	}
	last := had(s, r.node, end)
	if maps.EqualFunc(want, last, slices.Equal[[]netip.Addr]) {
		w.Logf("%s: %s in generation %d, at %s: nft or iptables-save had %v, the model %v at first", what, r.node, r.gen, st.at.Format("15:04:05.000000"), want, first)
		return
	}
	w.Errorf("%s: %s in generation %d, from %s to %s: nft or iptables-save had %v, the model %v and then %v", what, r.node, r.gen,
		st.at.Format("15:04:05.000000"), end.Format("15:04:05.000000"), want, first, last)
}

// had is where a node led at a time by a snapshot's word, for each Service.
func had(s *timeline.Snapshot, node string, t time.Time) map[string][]netip.Addr {
	have := map[string][]netip.Addr{}
	for _, svc := range s.Services {
		p := svc.Plane(timeline.PlaneID{Kind: timeline.PlaneRules, Node: node})
		if p == nil {
			continue
		}
		for i := range p.Members {
			if m := &p.Members[i]; m.Endpoint.IP.IsValid() && m.At(t).Have {
				key := svc.Namespace + "/" + svc.Name
				have[key] = append(have[key], m.Endpoint.IP)
			}
		}
	}
	tidy(have)
	return have
}

// agree compares every node's rules as read now with what the model says of that
// generation.
func (w *world) agree(what string) {
	w.Helper()
	for _, n := range w.cluster.Nodes() {
		r := w.read(n)
		place := w.known(what, r)
		for tries := 0; place < 0; tries++ { // looked at while it was being changed
			if tries == 10 {
				w.Fatalf("%s: %s is never at rest", what, n.Name())
			}
			r = w.read(n)
			place = w.known(what, r)
		}
		st, _ := w.history.state(n.Name(), place)
		s := w.until("the model's time to pass", func(s *timeline.Snapshot) bool { return s.Now.After(st.at.Add(time.Second)) })
		w.modelled(what, s, r, place)
		if !w.detailed(what, s, r, place) {
			w.Errorf("%s: %s had moved on", what, n.Name())
		}
	}
}

// detailed compares a snapshot's view of a node in every detail with a reading: of
// every Service port, protocol, family and policy which frontends reach it, where it
// leads, its session affinity and sources. It reports whether the snapshot is of the
// state that was read, whose place in the history is given; else it compares nothing.
func (w *world) detailed(what string, s *timeline.Snapshot, r reading, place int) bool {
	w.Helper()
	st, _ := w.history.state(r.node, place)
	i := slices.IndexFunc(s.Nodes, func(n timeline.Node) bool { return n.Name == r.node })
	if i < 0 || s.Nodes[i].Generation != st.gen || w.legacy(r.node) && w.history.last(r.node) != place {
		return false
	}
	var have []collect.RulePort
	for _, svc := range s.Services {
		if p := svc.Plane(timeline.PlaneID{Kind: timeline.PlaneRules, Node: r.node}); p != nil {
			have = append(have, p.Ports...)
		}
	}
	if want, got := lines(r.ports), lines(have); !slices.Equal(want, got) {
		w.Errorf("%s: %s in generation %d:\nread   %s\nmodel  %s", what, r.node, st.gen, strings.Join(want, "\n       "), strings.Join(got, "\n       "))
	}
	return true
}

// causal checks the paths of web that have arrived since the last call: the slice
// after its cause, each node after the slice, within the errors stated, and each
// node in the very generation in which the endpoint came or went. It returns how
// many there were.
func (w *world) causal(what string, s *timeline.Snapshot) (arrivals int) {
	w.Helper()
	svc := s.Service("default", "web")
	if svc == nil {
		return 0
	}
	for _, p := range svc.Paths {
		if p.Status != timeline.StatusArrived || !p.Endpoint.IP.IsValid() || w.checked[p.ID] {
			continue
		}
		w.checked[p.ID] = true
		if p.Slice != nil && p.Slice.Status == timeline.StatusArrived && p.Slice.Lag < -p.Slice.Error {
			w.Errorf("%s: path %s: the slice came %s before its cause (error %s)", what, p.ID, -p.Slice.Lag, p.Slice.Error)
		}
		for i := range p.Rules {
			h := &p.Rules[i]
			if h.Status != timeline.StatusArrived {
				continue
			}
			if h.FromStep < -h.Error {
				w.Errorf("%s: path %s: %s came %s before what it follows (error %s)", what, p.ID, h.Plane.Node, -h.FromStep, h.Error)
			}
			if w.inGeneration(what, p, h) {
				arrivals++
			}
		}
	}
	return arrivals
}

// inGeneration checks that the endpoint was added or removed by the generation
// that a hop names. Of a hop without one there is nothing to check.
func (w *world) inGeneration(what string, p *timeline.Path, h *timeline.Hop) bool {
	w.Helper()
	if w.legacy(h.Plane.Node) {
		return w.betweenLooks(what, p, h)
	}
	if h.Generation == 0 || p.Op != timeline.OpAdd && p.Op != timeline.OpRemove || !strings.HasPrefix(h.Note, "generation") {
		return false
	}
	place, ok, _ := w.history.at(h.Plane.Node, h.Generation)
	if !ok {
		w.Errorf("%s: path %s arrived on %s in generation %d, which nobody told of", what, p.ID, h.Plane.Node, h.Generation)
		return false
	}
	w.moved(what, p, h, place)
	return true
}

// betweenLooks is inGeneration for rules that are looked at from time to time: the hop
// must lie where the two looks were, and the endpoint have come or gone there.
func (w *world) betweenLooks(what string, p *timeline.Path, h *timeline.Hop) bool {
	w.Helper()
	if p.Op != timeline.OpAdd && p.Op != timeline.OpRemove || !strings.HasPrefix(h.Note, "generation") {
		return false
	}
	place := w.history.from(h.Plane.Node, h.At)
	if place < 0 {
		w.Errorf("%s: path %s arrived on %s at %s, of which nobody told", what, p.ID, h.Plane.Node, h.At)
		return false
	}
	if now, _ := w.history.state(h.Plane.Node, place); !h.NotBefore.Equal(now.since) || !now.since.Before(now.at) {
		w.Errorf("%s: path %s arrived on %s between %s and %s, the looks were at %s and %s", what, p.ID, h.Plane.Node, h.NotBefore, h.At, now.since, now.at)
	}
	w.moved(what, p, h, place)
	return true
}

// moved checks that a path's endpoint came or went with a state.
func (w *world) moved(what string, p *timeline.Path, h *timeline.Hop, place int) {
	w.Helper()
	now, before := w.history.state(h.Plane.Node, place)
	key := p.Namespace + "/" + p.Service
	has, had := ways(now.list(), key, p.Endpoint.IP), ways(before.list(), key, p.Endpoint.IP)
	// An address that another pod had before has arrived with its last port, and one
	// that goes may stay where a Local policy has nothing better.
	more, fewer := has, had
	if p.Op == timeline.OpRemove {
		more, fewer = had, has
	}
	missing := slices.ContainsFunc(fewer, func(way string) bool { return !slices.Contains(more, way) && p.Op == timeline.OpRemove })
	if len(more) == 0 || slices.Equal(more, fewer) || missing {
		w.Errorf("%s: path %s (%s of %s) arrived on %s in generation %d, in which it was in %q, and in %q before", what, p.ID, p.Op, p.Endpoint.IP, h.Plane.Node, h.Generation, has, had)
	}
}

// ways tells in which ports a Service leads to an address.
func ways(ports []collect.RulePort, service string, ip netip.Addr) (out []string) {
	for i := range ports {
		for _, e := range ports[i].Endpoints {
			if p := &ports[i]; e.Addr() == ip && p.Namespace+"/"+p.Service == service {
				out = append(out, fmt.Sprintf("%s/%s/%s %d", p.Port, p.Protocol, p.Policy, e.Port()))
			}
		}
	}
	slices.Sort(out)
	return out
}
