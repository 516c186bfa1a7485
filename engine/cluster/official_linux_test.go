package cluster_test

import (
	"context"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kconverge/kconverge/engine/cluster"
	"github.com/kconverge/kconverge/engine/lab/nodes"
	"github.com/kconverge/kconverge/engine/timeline"
)

// measured is kubeproxy_network_programming_duration_seconds of IPv4.
type measured struct {
	count uint64
	sum   time.Duration
}

// asks reads a kube-proxy's metric from inside its node.
func (w *world) asks(node string) measured {
	w.Helper()
	i := slices.IndexFunc(w.cluster.Nodes(), func(n *nodes.Node) bool { return n.Name() == node })
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		return w.cluster.Nodes()[i].Dial(ctx, network, addr)
	}}}
	r, err := client.Get("http://127.0.0.1:10249/metrics")
	w.must(err)
	defer r.Body.Close()
	p := expfmt.NewTextParser(model.LegacyValidation)
	families, err := p.TextToMetricFamilies(r.Body)
	w.must(err)
	var out measured
	for _, m := range families["kubeproxy_network_programming_duration_seconds"].GetMetric() {
		for _, l := range m.GetLabel() {
			if l.GetValue() == "IPv4" {
				out.count = m.GetHistogram().GetSampleCount()
				out.sum = time.Duration(m.GetHistogram().GetSampleSum() * float64(time.Second))
			}
		}
	}
	return out
}

// What the model says of the official metric is what the real kube-proxies put
// into it. Hand-made slices, so that there is one write at a time and its trigger
// time is known.
func TestTheOfficialNumberIsThatOfTheRealKubeProxy(t *testing.T) {
	for _, mode := range []string{cluster.NFTables, cluster.IPTables} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			official(start(t, mode, 2))
		})
	}
}

func official(w *world) {
	ctx := w.Context()
	_, err := w.client.CoreV1().Services("default").Create(ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
	}, metav1.CreateOptions{})
	w.must(err)
	esl := w.client.DiscoveryV1().EndpointSlices("default")
	slice := func(name string, trigger time.Time, addrs ...string) *discoveryv1.EndpointSlice {
		s := &discoveryv1.EndpointSlice{
			ObjectMeta:  metav1.ObjectMeta{Name: name, Labels: map[string]string{discoveryv1.LabelServiceName: "web"}},
			AddressType: discoveryv1.AddressTypeIPv4,
			Ports:       []discoveryv1.EndpointPort{{Name: new(""), Port: new(int32(8080)), Protocol: new(corev1.ProtocolTCP)}},
		}
		if !trigger.IsZero() {
			s.Annotations = map[string]string{corev1.EndpointsLastChangeTriggerTime: trigger.UTC().Format(time.RFC3339Nano)}
		}
		for _, a := range addrs {
			s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{Addresses: []string{a}})
		}
		return s
	}
	node := func(i int) string { return w.cluster.Nodes()[i].Name() }
	web := func(s *timeline.Snapshot) *timeline.Service { return s.Service("default", "web") }
	// follow waits until both nodes have followed a change and gives its path.
	known := 0
	follow := func(what string) *timeline.Path {
		w.Helper()
		s := w.until(what, func(s *timeline.Snapshot) bool {
			svc := web(s)
			return svc != nil && len(svc.Paths) > known && svc.State == timeline.Converged && len(svc.Differences) == 0
		})
		paths := web(s).Paths
		p := paths[len(paths)-1]
		known = len(paths)
		if len(p.Rules) != 2 {
			w.Fatalf("%s: %d nodes followed", what, len(p.Rules))
		}
		return p
	}
	w.until("the Service", func(s *timeline.Snapshot) bool { return web(s) != nil && web(s).Rules.Len() == 2 })
	_, err = esl.Create(ctx, slice("web-1", time.Time{}, "10.0.0.1"), metav1.CreateOptions{})
	w.must(err)
	w.until("the first endpoint everywhere", func(s *timeline.Snapshot) bool {
		return !slices.ContainsFunc(web(s).Rules.All(), func(p *timeline.Plane) bool { return p.Changes[len(p.Changes)-1].Have != 1 }) && web(s).State == timeline.Converged
	})
	w.until("each kube-proxy to have run for longer than there is a doubt about", func(s *timeline.Snapshot) bool {
		return !slices.ContainsFunc(s.Nodes, func(n timeline.Node) bool {
			return n.Proxy == nil || n.Proxy.Started.IsZero() || s.Now.Before(n.Proxy.Started.Add(4*time.Second))
		})
	})
	known = len(web(w.rt.Latest()).Paths)
	early := time.Now().Add(-time.Hour) // before any of these kube-proxies
	younger := time.Now()
	for _, c := range []struct {
		name    string
		write   func() error
		trigger time.Time // zero: there is no number
		why     string
	}{
		{name: "a trigger time", trigger: younger, write: func() error {
			_, err := esl.Update(ctx, slice("web-1", younger, "10.0.0.1", "10.0.0.2"), metav1.UpdateOptions{})
			return err
		}},
		{name: "the same trigger time once more, as an edit by hand leaves it", trigger: younger, write: func() error {
			_, err := esl.Update(ctx, slice("web-1", younger, "10.0.0.1"), metav1.UpdateOptions{})
			return err
		}},
		{name: "no trigger time", why: "no trigger time", write: func() error {
			_, err := esl.Update(ctx, slice("web-1", time.Time{}, "10.0.0.1", "10.0.0.3"), metav1.UpdateOptions{})
			return err
		}},
		{name: "older than kube-proxy", why: "older", write: func() error {
			_, err := esl.Update(ctx, slice("web-1", early, "10.0.0.3"), metav1.UpdateOptions{})
			return err
		}},
		{name: "the slice is deleted", why: "deleted", write: func() error {
			return esl.Delete(ctx, "web-1", metav1.DeleteOptions{})
		}},
	} {
		before := [2]measured{w.asks(node(0)), w.asks(node(1))}
		if err := c.write(); err != nil {
			w.Fatalf("%s: %v", c.name, err)
		}
		p := follow(c.name)
		for i := range before {
			// kube-proxy measures at the end of its sync, a little after the rules.
			var now measured
			for {
				if now = w.asks(node(i)); c.trigger.IsZero() || now.count > before[i].count {
					break
				}
				select {
				case <-ctx.Done():
					w.Fatalf("%s: %s measured nothing", c.name, node(i))
				case <-time.After(20 * time.Millisecond):
				}
			}
			h := p.Rules[i]
			n, took := now.count-before[i].count, now.sum-before[i].sum
			switch {
			case c.trigger.IsZero():
				if n != 0 || h.Official != nil || !strings.Contains(h.OfficialWhy, c.why) {
					w.Errorf("%s: %s measured %d, the model says %v %q", c.name, node(i), n, h.Official, h.OfficialWhy)
				}
			case n != 1 || h.Official == nil:
				w.Errorf("%s: %s measured %d, the model says %v %q", c.name, node(i), n, h.Official, h.OfficialWhy)
			default:
				// The end of the sync comes after the rules and before we asked. The
				// rules may have come at any moment of their interval.
				known := h.Error + time.Millisecond
				if !h.NotBefore.IsZero() {
					known += h.At.Sub(h.NotBefore)
				}
				if late := took - *h.Official; late < -known || late > time.Since(c.trigger)-*h.Official {
					w.Errorf("%s: %s measured %s, the model says %s (error %s)", c.name, node(i), took, *h.Official, h.Error)
				} else {
					w.Logf("%s: %s: %s measured %s, the model says %s: %s before the end of the sync", w.mode, c.name, node(i), took, *h.Official, late)
				}
			}
		}
	}
	// What the agents tell of the metric is what we asked ourselves.
	for i := range 2 {
		w.until("the agent to tell of the metric", func(s *timeline.Snapshot) bool {
			n := s.Nodes[slices.IndexFunc(s.Nodes, func(n timeline.Node) bool { return n.Name == node(i) })]
			return n.Proxy.ProgrammingCount == w.asks(node(i)).count
		})
	}
}
