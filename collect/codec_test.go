package collect

import (
	"bytes"
	"errors"
	"io"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestEveryPayloadSurvivesTheCodec(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 4, 13, 71_000_123, time.UTC)
	ip := netip.MustParseAddr("10.244.3.5")
	payloads := []Payload{
		&Pod{Labels: map[string]string{"app": "web"}, IPs: []netip.Addr{ip}, Phase: "Running", Ready: &Condition{Status: true, Since: at}, Grace: 15 * time.Second},
		&Service{Selector: map[string]string{"app": "web"}, Ports: []ServicePort{{Protocol: TCP, Port: 80, TargetName: "http"}}, ClusterIPs: []netip.Addr{ip}, Written: at},
		&EndpointSlice{Service: "web", Family: IPv4, Endpoints: []SliceEndpoint{{Address: ip, Serving: true, Terminating: true, PodUID: "u"}}, Created: at, Written: at},
		&Endpoints{Addresses: []EndpointsAddress{{IP: ip, Ready: true}}, Created: at, Written: at},
		&Node{Zone: "a", Addresses: []netip.Addr{ip}},
		&Workload{Generation: 2, Replicas: 7},
		&KubeEvent{Reason: "Unhealthy", Regarding: ObjectKey{Kind: "Pod", Namespace: "default", Name: "web-1"}},
		&Rules{Node: "node-1", Generation: 77, Ports: []RulePort{{
			RulePortKey: RulePortKey{Namespace: "default", Service: "web", Protocol: TCP, Family: IPv4, Policy: PolicyCluster},
			Frontends:   []Frontend{{Kind: FrontendClusterIP, Addr: netip.AddrPortFrom(ip, 80)}},
			Endpoints:   []netip.AddrPort{netip.AddrPortFrom(ip, 8080)},
		}}},
		&Vouch{Until: at, How: "bookmark"},
		&SourceState{State: SourceBroken, Detail: "connection refused"},
		&Gap{From: at, Why: "overrun"},
		&Session{Kind: "lab", Name: "lab", Started: at},
		&Action{Text: "scale web 4→7"},
		&ReconcileStep{Controller: "endpointslice", Step: "wrote", Took: time.Millisecond},
		&ControllerState{Workers: 5, Resync: 12 * time.Hour, NextResync: at},
		&SyncStep{Node: "node-1", Step: "committed", Generation: 77},
		&Advance{},
		&AgentState{Node: "node-1", Version: "v1", Instance: "a1b2", Started: at, Uptime: time.Second, Heartbeat: 10 * time.Second, Keyframe: time.Minute, Clock: NodeClock{Synchronised: true, MaxError: time.Millisecond, Boot: "b"}},
		&Keyframe{Node: "node-1", Generation: 7, Layout: "flat", Part: 1, Parts: 2, Ports: []KeyPort{{RulePort: RulePort{RulePortKey: RulePortKey{Namespace: "default", Service: "web", Protocol: TCP, Family: IPv4, Policy: PolicyCluster}}, Digest: "0011", N: 3, Whole: true}}, Unknown: []string{"x"}},
		&ProxyState{Node: "node-1", Reachable: true, Healthy: new(true), Mode: "nftables", Version: "v1.37.2", Started: at, ProgrammingCount: 2, ProgrammingSeconds: 1.5, SyncCount: 3, SyncSeconds: 0.5, SyncFailures: 1, LastSync: at, LastQueued: at, PendingEndpoints: 1, PendingServices: 2},
		&ClockBound{Offset: time.Second, Error: time.Millisecond, OneSided: true, How: "logs"},
		&RulesPast{Node: "node-1", From: at, FromError: time.Second, OneSided: true, Dropped: 2, Gaps: []Gap{{From: at, To: at, Why: "lost"}}, Changes: []PastChange{
			{At: at, NotBefore: at, Error: time.Millisecond, Generation: 7, Namespace: "default", Service: "web", Endpoints: 4}}},
		&Fault{Name: "sync-delay", Amount: "5s", Target: "node-2", By: "screen"},
		&Connections{Node: "node-1", Address: netip.AddrPortFrom(ip, 80), From: at, OK: 3, Failed: 1, Skipped: 2, Slowest: time.Millisecond, Answered: []Answered{{UID: "u", N: 3}}},
		&ConnectionFailed{Node: "node-1", Address: netip.AddrPortFrom(ip, 80), Began: at, Result: ConnectionRefused},
		&Narration{Scenario: "tour", Chapter: "one", Text: "so", Waiting: true, Next: "two", Verdict: "met"},
	}
	if len(payloads) != len(payloadTypes) {
		t.Fatalf("the codec knows %d payloads, this test %d", len(payloadTypes), len(payloads))
	}
	var buf bytes.Buffer
	w := NewWriter(&buf)
	var want []Event
	for i, p := range payloads {
		e := Event{
			Seq: uint64(i + 1), At: at.Add(time.Duration(i)), NotBefore: at.Add(-time.Second), Source: SourcePods, Op: OpModified,
			Object: ObjectKey{Kind: "Pod", Namespace: "default", Name: "web-1"}, UID: "u", ResourceVersion: 41, Payload: p,
		}
		want = append(want, e)
		if err := w.Write(e); err != nil {
			t.Fatal(err)
		}
	}
	r := NewReader(&buf)
	for _, e := range want {
		got, err := r.Read()
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, e) {
			t.Errorf("%s came back as\n%+v\nwant\n%+v", e.Payload.Type(), got.Payload, e.Payload)
		}
	}
	if _, err := r.Read(); !errors.Is(err, io.EOF) {
		t.Errorf("after the last line: %v, want EOF", err)
	}
}

// What an older recording does not say is not known, and no other time takes its
// place; what nobody knows takes no room on a line.
func TestALineWithoutClaimedTimesReads(t *testing.T) {
	for _, line := range []string{
		`{"at":"2026-03-01T12:00:00Z","src":"kube/endpointslices","type":"endpointslice","op":"listed","data":{"service":"web","family":"IPv4","created":"2026-03-01T11:00:00Z"}}`,
		`{"at":"2026-03-01T12:00:00Z","src":"kube/endpoints","type":"endpoints","op":"listed","data":{"trigger":"2026-03-01T11:00:00Z"}}`,
		`{"at":"2026-03-01T12:00:00Z","src":"kube/services","type":"service","op":"listed","data":{"created":"2026-03-01T11:00:00Z","type":"ClusterIP"}}`,
	} {
		e, err := Unmarshal([]byte(line))
		if err != nil {
			t.Fatal(err)
		}
		switch p := e.Payload.(type) {
		case *EndpointSlice:
			if !p.Written.IsZero() || p.Created.IsZero() {
				t.Errorf("slice %+v", p)
			}
		case *Endpoints:
			if !p.Written.IsZero() || !p.Created.IsZero() || p.TriggerTime.IsZero() {
				t.Errorf("endpoints %+v", p)
			}
		case *Service:
			if !p.Written.IsZero() {
				t.Errorf("service %+v", p)
			}
		}
		again, err := Marshal(e)
		if err != nil || string(again) != line {
			t.Errorf("%v\n got %s\nwant %s", err, again, line)
		}
	}
}

func TestABadLineIsNamedAndReadingGoesOn(t *testing.T) {
	in := `{"at":"2026-03-01T12:00:00Z","src":"clock","type":"advance"}
{"at":"2026-03-01T12:00:00Z","src":"clock","type":"from-the-future"}

nonsense
{"at":"2026-03-01T12:00:01Z","src":"clock","type":"advance"}
`
	r := NewReader(strings.NewReader(in))
	if _, err := r.Read(); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"line 2", "line 4"} {
		_, err := r.Read()
		if !errors.Is(err, ErrBadLine) || !strings.Contains(err.Error(), part) {
			t.Errorf("error %v, want one about %s", err, part)
		}
	}
	if e, err := r.Read(); err != nil || e.At.Second() != 1 {
		t.Errorf("the line after a bad one: %v, %v", e, err)
	}
}

func FuzzUnmarshal(f *testing.F) {
	f.Add([]byte(`{"at":"2026-03-01T12:00:00Z","src":"kube/pods","type":"pod","op":"added","data":{"phase":"Running"}}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		e, err := Unmarshal(line)
		if err != nil {
			return
		}
		out, err := Marshal(e)
		if err != nil {
			return // for instance a year beyond what RFC 3339 can say
		}
		again, err := Unmarshal(out)
		if err != nil {
			t.Fatalf("%s does not read back: %v", out, err)
		}
		second, err := Marshal(again)
		if err != nil || !bytes.Equal(out, second) {
			t.Fatalf("not stable:\n%s\n%s\n%v", out, second, err)
		}
	})
}
