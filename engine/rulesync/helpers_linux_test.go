package rulesync

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/netip"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/collect/noderules"
	"github.com/kconverge/kconverge/engine/desired"
	"github.com/kconverge/kconverge/engine/lab/nodes"
)

// cluster is nodes with a rule sync each, fed by a fake API.
type cluster struct {
	t      *testing.T
	client *fake.Clientset
	net    *nodes.Cluster
	steps  *steps
}

// steps collects events and lets a test wait for one.
type steps struct {
	mu  sync.Mutex
	all []collect.Event
	ch  chan struct{}
}

func newSteps() *steps { return &steps{ch: make(chan struct{})} }

func (s *steps) Emit(e collect.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, e)
	close(s.ch)
	s.ch = make(chan struct{})
}

// wait returns the first step from index from on that matches, and the index
// behind it.
func (s *steps) wait(t *testing.T, from int, what string, match func(collect.Event, *collect.SyncStep) bool) (collect.Event, int) {
	t.Helper()
	limit := time.After(30 * time.Second)
	for {
		s.mu.Lock()
		for i := from; i < len(s.all); i++ {
			if p := s.all[i].Payload.(*collect.SyncStep); match(s.all[i], p) {
				e := s.all[i]
				s.mu.Unlock()
				return e, i + 1
			}
		}
		ch := s.ch
		s.mu.Unlock()
		select {
		case <-ch:
		case <-limit:
			t.Fatalf("no step %s", what)
		}
	}
}

func (s *steps) len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.all)
}

func startCluster(t *testing.T, n int, o Options) *cluster {
	t.Helper()
	net, err := nodes.Start(t.Context(), nodes.Options{Count: n})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = net.Close() })
	c := &cluster{t: t, client: fake.NewClientset(), net: net, steps: newSteps()}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	t.Cleanup(func() { cancel(); wg.Wait() })
	for _, node := range net.Nodes() {
		o := o
		o.Node = desired.NodeRef{Name: node.Name(), Addresses: node.Addresses()}
		o.NetNS, o.Client, o.Sink = node.NetNS(), c.client, c.steps
		o.ClusterCIDRs, o.ServiceCIDRs = []netip.Prefix{nodes.DefaultPodCIDR}, []netip.Prefix{nodes.DefaultServiceCIDR}
		s, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			if err := s.Run(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	for _, node := range net.Nodes() {
		c.steps.wait(t, 0, "committed on "+node.Name(), func(_ collect.Event, p *collect.SyncStep) bool {
			return p.Node == node.Name() && p.Step == "committed"
		})
	}
	return c
}

// settle runs change and returns when every node has committed what it was told
// of.
func (c *cluster) settle(change func()) {
	c.t.Helper()
	from := c.steps.len()
	change()
	for _, n := range c.net.Nodes() {
		_, at := c.steps.wait(c.t, from, "received on "+n.Name(), func(_ collect.Event, p *collect.SyncStep) bool {
			return p.Node == n.Name() && p.Step == "received"
		})
		_, at = c.steps.wait(c.t, at, "started on "+n.Name(), func(_ collect.Event, p *collect.SyncStep) bool {
			return p.Node == n.Name() && p.Step == "started"
		})
		c.steps.wait(c.t, at, "committed on "+n.Name(), func(_ collect.Event, p *collect.SyncStep) bool {
			if p.Node == n.Name() && p.Step == "failed" {
				c.t.Fatalf("sync on %s failed: %s", n.Name(), p.Detail)
			}
			return p.Node == n.Name() && p.Step == "committed"
		})
	}
}

const clusterIP = "10.96.0.10"

func webService() *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeClusterIP, ClusterIP: clusterIP, ClusterIPs: []string{clusterIP},
			IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol},
			Ports:      []corev1.ServicePort{{Name: "http", Protocol: corev1.ProtocolTCP, Port: 80}},
		},
	}
}

type endpoint struct {
	uid  string
	ip   netip.Addr
	node string
}

func webSlice(eps ...endpoint) *discoveryv1.EndpointSlice {
	yes, name, port, tcp := true, "http", int32(8080), corev1.ProtocolTCP
	s := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: "default", Name: "web-1", Labels: map[string]string{discoveryv1.LabelServiceName: "web"}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: &name, Port: &port, Protocol: &tcp}},
	}
	for _, e := range eps {
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{e.ip.String()}, NodeName: &e.node, Conditions: discoveryv1.EndpointConditions{Ready: &yes},
		})
	}
	return s
}

// pod opens a listener on a node.
func (c *cluster) pod(uid string, n *nodes.Node) endpoint {
	c.t.Helper()
	ips, err := n.Allocate(uid)
	if err != nil {
		c.t.Fatal(err)
	}
	if err := n.Listen(uid, uid, ips, []int32{8080}); err != nil {
		c.t.Fatal(err)
	}
	return endpoint{uid, ips[0], n.Name()}
}

func ask(ctx context.Context, n *nodes.Node, addr string) (string, error) {
	conn, err := n.Dial(ctx, "tcp", addr)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }()
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: web\r\n\r\n"); err != nil {
		return "", err
	}
	r, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return "", err
	}
	return r.Header.Get("X-Pod-UID"), r.Body.Close()
}

// answers makes connections from a node to the ClusterIP and counts the pods
// that answer.
func (c *cluster) answers(n *nodes.Node, connections int) map[string]int {
	c.t.Helper()
	got := map[string]int{}
	for range connections {
		uid, err := ask(c.t.Context(), n, clusterIP+":80")
		if err != nil {
			c.t.Fatalf("from %s: %v", n.Name(), err)
		}
		got[uid]++
	}
	return got
}

// readRules reads a node's rules by collect/noderules, from a thread inside.
func readRules(t *testing.T, n *nodes.Node) collect.Rules {
	t.Helper()
	var got collect.Rules
	err := n.Do(func() (err error) {
		got, err = noderules.Read(t.Context(), noderules.Options{Node: n.Name()})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Unknown) > 0 {
		t.Errorf("%s: rules that lead to no Service: %v", n.Name(), got.Unknown)
	}
	return got
}
