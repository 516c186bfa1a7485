package traffic_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/engine/lab/traffic"
)

// node dials wherever it is told to go in the place of the address asked for.
type node struct {
	to   atomic.Pointer[string]
	asks sync.Map // addresses asked for
	// ports are those that connections came from, by where they went; again is set when
	// one was used twice.
	ports sync.Map
	again atomic.Bool
}

func (*node) Name() string { return "node-1" }

func (*node) Addresses() []netip.Addr {
	return []netip.Addr{netip.MustParseAddr("198.18.0.1"), netip.MustParseAddr("2001:2::1")}
}

func (n *node) DialFrom(ctx context.Context, address string, port uint16) (net.Conn, error) {
	n.asks.Store(address, true)
	if port%5 == 0 { // somebody has it
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.EADDRINUSE}
	}
	if _, again := n.ports.LoadOrStore(fmt.Sprint(address, " from ", port), true); again {
		n.again.Store(true)
	}
	return new(net.Dialer).DialContext(ctx, "tcp", *n.to.Load())
}

// TestConnectionsAreCountedByWhoAnswersAndFailuresAreToldOneByOne lets a pod answer, and
// then go.
func TestConnectionsAreCountedByWhoAnswersAndFailuresAreToldOneByOne(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X-Pod-UID", "u1") })}
	go func() { _ = server.Serve(l) }()
	defer func() { _ = server.Close() }()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nowhere := closed.Addr().String()
	_ = closed.Close()

	n, there := &node{}, l.Addr().String()
	n.to.Store(&there)
	service := func(name, ip string) *corev1.Service {
		return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: corev1.ServiceSpec{
			ClusterIPs: []string{ip}, Ports: []corev1.ServicePort{{Port: 80, NodePort: 30080, Protocol: corev1.ProtocolTCP}, {Port: 53, NodePort: 30053, Protocol: corev1.ProtocolUDP}}}}
	}
	events := make(chan collect.Event, 1000)
	tr, err := traffic.New(traffic.Options{
		Client: fake.NewClientset(service("web", "10.96.0.1"), service("headless", corev1.ClusterIPNone)),
		Nodes:  []traffic.Node{n}, Sink: collect.SinkFunc(func(e collect.Event) { events <- e }), Rate: 50,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- tr.Run(ctx) }()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	next := func(what string, wanted func(collect.Event) bool) collect.Event {
		t.Helper()
		for {
			select {
			case e := <-events:
				if e.Source != collect.TrafficSource("node-1") || e.Object.Name != "web" {
					t.Fatalf("an event of %s about %+v", e.Source, e.Object)
				}
				if wanted(e) {
					return e
				}
			case <-time.After(time.Minute):
				t.Fatalf("no %s within a minute", what)
			}
		}
	}
	next("answered connections", func(e collect.Event) bool {
		c, ok := e.Payload.(*collect.Connections)
		return ok && c.OK > 0 && c.Failed == 0 && len(c.Answered) == 1 && c.Answered[0] == (collect.Answered{UID: "u1", N: c.OK}) && c.From.Before(e.At)
	})
	n.to.Store(&nowhere)
	next("a refusal", func(e collect.Event) bool {
		f, ok := e.Payload.(*collect.ConnectionFailed)
		return ok && f.Result == collect.ConnectionRefused && !f.Began.After(e.At) && f.Address.String() == "10.96.0.1:80"
	})
	next("a refusal at the NodePort", func(e collect.Event) bool {
		f, ok := e.Payload.(*collect.ConnectionFailed)
		return ok && f.Result == collect.ConnectionRefused && f.Address.String() == "198.18.0.1:30080"
	})
	next("refusals in the count", func(e collect.Event) bool { c, ok := e.Payload.(*collect.Connections); return ok && c.Failed > 0 })
	if n.again.Load() {
		t.Error("two connections to one address had the same source port")
	}
	n.asks.Range(func(address, _ any) bool {
		if address != "10.96.0.1:80" && address != "198.18.0.1:30080" {
			t.Errorf("connected to %s", address)
		}
		return true
	})
}

func TestARateHasBounds(t *testing.T) {
	o := traffic.Options{Client: fake.NewClientset(), Sink: collect.SinkFunc(func(collect.Event) {}), Rate: traffic.MaxRate + 1}
	if _, err := traffic.New(o); err == nil {
		t.Error("more than the most was taken")
	}
	o.Rate = 3
	tr, err := traffic.New(o)
	if err != nil {
		t.Fatal(err)
	}
	if err := tr.SetRate(-1); err == nil || tr.Rate() != 3 {
		t.Errorf("a negative rate: %v, then %d", err, tr.Rate())
	}
}
