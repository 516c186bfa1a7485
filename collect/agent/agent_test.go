package agent

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kconverge/kconverge/collect"
)

// script is a Source of rules that emits what it is told.
type script struct {
	events chan collect.Event
	failed chan error
}

func newScript() *script {
	return &script{events: make(chan collect.Event), failed: make(chan error)}
}

func (s *script) Name() string { return "script" }

func (s *script) Run(ctx context.Context, sink collect.Sink) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-s.failed:
			return err
		case e := <-s.events:
			sink.Emit(e)
		}
	}
}

func rulesEvent(generation uint32, baseline bool, ports ...collect.RulePort) collect.Event {
	return collect.Event{
		At: time.Now(), Source: collect.RulesSource("node-1"), Object: collect.ObjectKey{Kind: "Node", Name: "node-1"},
		Payload: &collect.Rules{Node: "node-1", Generation: generation, Baseline: baseline, Ports: ports},
	}
}

// port is a Service port with n endpoints.
func port(name string, n int) collect.RulePort {
	p := collect.RulePort{
		RulePortKey: collect.RulePortKey{Namespace: "default", Service: name, Protocol: collect.TCP, Family: collect.IPv4, Policy: collect.PolicyCluster},
		Frontends:   []collect.Frontend{{Kind: collect.FrontendClusterIP, Addr: netip.MustParseAddrPort("10.96.0.1:80")}},
	}
	for i := range n {
		p.Endpoints = append(p.Endpoints, netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 244, byte(i >> 8), byte(i)}), 8080))
	}
	return p
}

// options are those of an agent that is fast and asks no kube-proxy.
func options(s *script) Options {
	return Options{Node: "node-1", Heartbeat: 5 * time.Millisecond, Keyframe: 10 * time.Millisecond, Rules: func() collect.Source { return s }}
}

// printed parses an agent's output and checks that its lines are short and
// numbered without a break.
func printed(t *testing.T, out string) []collect.Event {
	t.Helper()
	var events []collect.Event
	for line := range strings.Lines(out) {
		if len(line) > MaxLine+1 {
			t.Errorf("a line of %d bytes", len(line))
		}
		e, err := collect.Unmarshal([]byte(line))
		if err != nil {
			t.Fatal(err)
		}
		if want := uint64(len(events) + 1); e.Seq != want {
			t.Fatalf("line %d has number %d", want, e.Seq)
		}
		events = append(events, e)
	}
	return events
}

// output is what an agent printed so far.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for i := 0; !ok(); i++ {
		if i > 12000 {
			t.Fatalf("still not: %s", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func TestAnAgentSaysWhoItIsAndEverythingThereIs(t *testing.T) {
	s, out := newScript(), &output{}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, options(s), out) }()
	s.events <- rulesEvent(1, true, port("web", 3), port("large", 700))
	s.events <- rulesEvent(2, false, port("web", 2))
	eventually(t, "both ports are in a keyframe in whole", func() bool {
		return strings.Count(out.String(), `"whole":true`) >= 2
	})
	stop()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	events := printed(t, out.String())
	if a, ok := events[0].Payload.(*collect.AgentState); !ok || a.Instance == "" || a.Node != "node-1" {
		t.Errorf("the first line is %+v", events[0].Payload)
	}
	if last, ok := events[len(events)-1].Payload.(*collect.SourceState); !ok || last.State != collect.SourceStopped || last.Detail == "" {
		t.Errorf("the last line is %+v", events[len(events)-1].Payload)
	}
	keyed := map[string]bool{}
	want := map[string]string{}
	for _, p := range []collect.RulePort{port("web", 2), port("large", 700)} {
		want[p.Service] = p.Digest()
	}
	for _, e := range events {
		if k, ok := e.Payload.(*collect.Keyframe); ok && k.Generation == 2 {
			for _, p := range k.Ports {
				if p.Digest != want[p.Service] {
					t.Errorf("digest of %s is %s, want %s", p.Service, p.Digest, want[p.Service])
				}
				keyed[p.Service] = true
			}
		}
	}
	if len(keyed) != 2 {
		t.Errorf("keyframes name %v", keyed)
	}
}

// slow is a reader that reads nothing until it is let.
type slow struct {
	output
	let chan struct{}
}

func (s *slow) Write(p []byte) (int, error) {
	<-s.let
	return s.output.Write(p)
}

func TestWhatNobodyReadsBecomesAGapAndTheStateAfterIt(t *testing.T) {
	s, out := newScript(), &slow{let: make(chan struct{})}
	ctx, stop := context.WithCancel(t.Context())
	o := options(s)
	o.Heartbeat, o.Keyframe = time.Hour, time.Hour
	a, err := newAgent(o)
	if err != nil {
		t.Fatal(err)
	}
	a.queue.limit = 1000
	ended := make(chan error, 1)
	go func() { ended <- a.run(ctx, out) }()
	s.events <- rulesEvent(1, true, port("web", 3))
	for i := range 1000 {
		s.events <- rulesEvent(uint32(i+2), false, port("web", i%7))
	}
	close(out.let)
	eventually(t, "a gap and a new baseline", func() bool {
		return strings.Contains(out.String(), `"type":"gap"`) && strings.Count(out.String(), `"baseline":true`) >= 1
	})
	stop()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	told, lost := 0, 0
	var last *collect.Rules
	for _, e := range printed(t, out.String()) {
		switch p := e.Payload.(type) {
		case *collect.Gap:
			lost += p.Lost
			if p.From.IsZero() || p.To.Before(p.From) {
				t.Errorf("gap %+v", p)
			}
		case *collect.Rules:
			if p.Baseline && !e.NotBefore.IsZero() {
				last = p
				continue
			}
			if told++; last != nil {
				last = p // what came after the gap was told again
			}
		}
	}
	if lost == 0 || told+lost < 1001 {
		t.Errorf("%d told and %d lost of 1001", told, lost)
	}
	if want := port("web", 999%7); last == nil || len(last.Ports) != 1 || last.Ports[0].Digest() != want.Digest() {
		t.Errorf("after the gap: %+v", last)
	}
}

func TestAClosedPipeEndsTheAgentWithAnError(t *testing.T) {
	r, w := io.Pipe()
	r.Close()
	err := Run(t.Context(), options(newScript()), w)
	if err == nil || !strings.Contains(err.Error(), "nobody reads") {
		t.Errorf("error %v", err)
	}
}

func TestRulesThatMayNotBeReadEndTheAgent(t *testing.T) {
	s, out := newScript(), &output{}
	ended := make(chan error, 1)
	go func() { ended <- Run(t.Context(), options(s), out) }()
	s.events <- collect.Event{At: time.Now(), Source: collect.RulesSource("node-1"), Payload: &collect.SourceState{State: collect.SourceForbidden, Detail: "operation not permitted"}}
	s.failed <- fmt.Errorf("operation not permitted")
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "not permitted") {
		t.Errorf("error %v", err)
	}
	printed(t, out.String())
}

// What kube-proxy 1.37.2 in nftables mode gives at /metrics, cut to what is read
// and its neighbours.
const metricsText = `# HELP kubeproxy_network_programming_duration_seconds [ALPHA] In Cluster Network Programming Latency in seconds
# TYPE kubeproxy_network_programming_duration_seconds histogram
kubeproxy_network_programming_duration_seconds_bucket{ip_family="IPv4",le="0.25"} 4
kubeproxy_network_programming_duration_seconds_bucket{ip_family="IPv4",le="+Inf"} 7
kubeproxy_network_programming_duration_seconds_sum{ip_family="IPv4"} 9.5
kubeproxy_network_programming_duration_seconds_count{ip_family="IPv4"} 7
kubeproxy_network_programming_duration_seconds_sum{ip_family="IPv6"} 0.5
kubeproxy_network_programming_duration_seconds_count{ip_family="IPv6"} 1
kubeproxy_sync_proxy_rules_duration_seconds_sum{ip_family="IPv4"} 0.25
kubeproxy_sync_proxy_rules_duration_seconds_count{ip_family="IPv4"} 12
kubeproxy_sync_proxy_rules_endpoint_changes_pending{ip_family="IPv4"} 3
kubeproxy_sync_proxy_rules_last_queued_timestamp_seconds{ip_family="IPv4"} 1.764460800e+09
kubeproxy_sync_proxy_rules_last_timestamp_seconds{ip_family="IPv4"} 1.7644608015e+09
kubeproxy_sync_proxy_rules_nftables_sync_failures_total{ip_family="IPv4"} 2
kubernetes_build_info{build_date="2026-01-01T00:00:00Z",compiler="gc",git_version="v1.37.2",go_version="go1.26.7"} 1
process_start_time_seconds 1.7644607e+09
go_gc_duration_seconds{quantile="0"} NaN
broken{ 1
`

func TestTheLocalKubeProxyIsAsked(t *testing.T) {
	healthy := http.StatusOK
	mux := http.NewServeMux()
	mux.HandleFunc("/metrics", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, metricsText) })
	mux.HandleFunc("/proxyMode", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "nftables") })
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(healthy) })
	server := httptest.NewServer(mux)
	p := proxy{node: "node-1", metrics: server.URL, health: server.URL}
	s := p.ask(t.Context())
	if !s.Reachable || s.Healthy == nil || !*s.Healthy || s.Mode != "nftables" || s.Version != "v1.37.2" {
		t.Errorf("%+v", s)
	}
	if s.ProgrammingCount != 8 || s.ProgrammingSeconds != 10 || s.SyncCount != 12 || s.SyncSeconds != 0.25 || s.SyncFailures != 2 || s.PendingEndpoints != 3 {
		t.Errorf("%+v", s)
	}
	if d := s.LastSync.Sub(s.LastQueued); d != 1500*time.Millisecond {
		t.Errorf("synced %s after it was queued", d)
	}
	healthy = http.StatusServiceUnavailable
	if s := p.ask(t.Context()); s.Healthy == nil || *s.Healthy {
		t.Errorf("unhealthy: %+v", s)
	}
	server.Close()
	if s := p.ask(t.Context()); s.Reachable || s.Why == "" || s.Healthy != nil {
		t.Errorf("gone: %+v", s)
	}
}
