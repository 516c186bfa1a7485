package rulesync

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/engine/desired"
)

// health answers load balancers on the health check ports of Services with
// externalTrafficPolicy Local: 200 when the node has ready endpoints, 503 when it
// has none or the rule sync is behind (pkg/proxy/healthcheck/service_health.go).
// It listens on the node's own addresses, as kube-proxy in nftables mode does
// (--nodeport-addresses primary).
type health struct {
	listen  func(netip.AddrPort) (net.Listener, error)
	healthy func() bool

	mu    sync.Mutex
	open  map[healthKey]*healthServer
	ready map[healthKey]int
}

// healthKey is one Service in one family: the endpoints of each are counted by
// themselves.
type healthKey struct {
	service types.NamespacedName
	family  collect.Family
}

type healthServer struct {
	addr   netip.AddrPort
	server *http.Server
	done   chan struct{}
}

func newHealth(listen func(netip.AddrPort) (net.Listener, error), healthy func() bool) *health {
	return &health{listen: listen, healthy: healthy, open: map[healthKey]*healthServer{}, ready: map[healthKey]int{}}
}

// sync opens and closes ports as the Services need them, and takes in the
// numbers of endpoints. A port that cannot be opened is tried again at the next
// sync; the error says so.
func (h *health) sync(services map[types.NamespacedName]input, node desired.NodeRef, families []collect.Family) error {
	want, ready := map[healthKey]netip.AddrPort{}, map[healthKey]int{}
	for name, in := range services {
		if in.service == nil {
			continue
		}
		port := desired.HealthCheckPort(in.service)
		if port == 0 {
			continue
		}
		ref := desired.ServiceRef{Namespace: name.Namespace, Name: name.Name, Service: in.service}
		for _, f := range families {
			i := slices.IndexFunc(node.Addresses, func(a netip.Addr) bool { return collect.FamilyOf(a) == f })
			if i < 0 || !slices.ContainsFunc(in.service.ClusterIPs, func(a netip.Addr) bool { return collect.FamilyOf(a) == f }) {
				continue
			}
			k := healthKey{name, f}
			want[k] = netip.AddrPortFrom(node.Addresses[i].Unmap(), port)
			ready[k] = desired.LocalReady(ref, in.slices, node.Name, f)
		}
	}
	h.mu.Lock()
	h.ready = ready
	h.mu.Unlock()
	for k, s := range h.open {
		if want[k] != s.addr {
			s.close()
			delete(h.open, k)
		}
	}
	var failed error
	for k, addr := range want {
		if h.open[k] != nil {
			continue
		}
		l, err := h.listen(addr)
		if err != nil {
			failed = fmt.Errorf("health check of %s: %w", k.service, err)
			continue
		}
		s := &healthServer{addr: addr, done: make(chan struct{}), server: &http.Server{
			ReadHeaderTimeout: 10 * time.Second,
			Handler:           http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { h.answer(w, k) }),
		}}
		h.open[k] = s
		go func() {
			defer close(s.done)
			_ = s.server.Serve(l) // until close
		}()
	}
	return failed
}

// answer is kube-proxy's.
func (h *health) answer(w http.ResponseWriter, k healthKey) {
	h.mu.Lock()
	n := h.ready[k]
	h.mu.Unlock()
	type service struct {
		Namespace string `json:"namespace"`
		Name      string `json:"name"`
	}
	healthy := h.healthy()
	body, err := json.MarshalIndent(struct {
		Service             service `json:"service"`
		LocalEndpoints      int     `json:"localEndpoints"`
		ServiceProxyHealthy bool    `json:"serviceProxyHealthy"`
	}{service{k.service.Namespace, k.service.Name}, n, healthy}, "", "\t")
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("X-Load-Balancing-Endpoint-Weight", strconv.Itoa(n))
	if n == 0 || !healthy {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_, _ = w.Write(body) // the client may be gone
}

// close closes every port.
func (h *health) close() {
	for k, s := range h.open {
		s.close()
		delete(h.open, k)
	}
}

func (s *healthServer) close() {
	_ = s.server.Close()
	<-s.done
}
