package rulesync

import (
	"cmp"
	"reflect"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kconverge/kconverge/collect"
)

// inputs are the Services and EndpointSlices as the watches last said, and the
// names of the Services that changed since the last sync took them. Like
// kube-proxy's change trackers it keeps quiet about changes of no consequence
// for rules (labels, annotations, trigger times), which do not cause a sync.
// Safe for concurrent use.
type inputs struct {
	mu       sync.Mutex
	services map[types.NamespacedName]*collect.Service
	slices   map[types.NamespacedName]*collect.EndpointSlice // by slice name
	of       map[types.NamespacedName]map[types.NamespacedName]struct{}
	pending  map[types.NamespacedName]struct{}
	// udp: the endpoints of a UDP port changed (ConntrackCleanupRequired of
	// kube-proxy's endpointschangetracker.go).
	udp bool
}

func newInputs() *inputs {
	return &inputs{
		services: map[types.NamespacedName]*collect.Service{},
		slices:   map[types.NamespacedName]*collect.EndpointSlice{},
		of:       map[types.NamespacedName]map[types.NamespacedName]struct{}{},
		pending:  map[types.NamespacedName]struct{}{},
	}
}

// whenCounted calls f with how many Services have changes, while no other can
// come.
func (in *inputs) whenCounted(f func(pending int)) {
	in.mu.Lock()
	defer in.mu.Unlock()
	f(len(in.pending))
}

// setService takes in a Service, nil when it is gone. changed reports that rules
// may change, pending how many Services have changes.
func (in *inputs) setService(name types.NamespacedName, svc *collect.Service) (changed bool, pending int) {
	in.mu.Lock()
	defer in.mu.Unlock()
	old := in.services[name]
	if svc == nil {
		delete(in.services, name)
	} else {
		in.services[name] = svc
	}
	if sameService(old, svc) {
		return false, len(in.pending)
	}
	in.pending[name] = struct{}{}
	return true, len(in.pending)
}

// setSlice takes in a slice, nil when it is gone. It returns the Service whose
// rules may change.
func (in *inputs) setSlice(name types.NamespacedName, s *collect.EndpointSlice) (svc types.NamespacedName, changed bool, pending int) {
	in.mu.Lock()
	defer in.mu.Unlock()
	old := in.slices[name]
	if old != nil && (s == nil || s.Service != old.Service) {
		// Gone, or relabelled to another Service.
		svc = types.NamespacedName{Namespace: name.Namespace, Name: old.Service}
		delete(in.of[svc], name)
		if len(in.of[svc]) == 0 {
			delete(in.of, svc)
		}
		in.pending[svc] = struct{}{}
		in.udp = in.udp || hasUDP(old)
		changed = true
	}
	if s == nil {
		delete(in.slices, name)
		return svc, changed, len(in.pending)
	}
	in.slices[name] = s
	svc = types.NamespacedName{Namespace: name.Namespace, Name: s.Service}
	if in.of[svc] == nil {
		in.of[svc] = map[types.NamespacedName]struct{}{}
	}
	in.of[svc][name] = struct{}{}
	if !sameSlice(old, s) {
		in.pending[svc] = struct{}{}
		in.udp = in.udp || hasUDP(old) || hasUDP(s)
		changed = true
	}
	return svc, changed, len(in.pending)
}

// input is what the rules of one Service follow from.
type input struct {
	service *collect.Service // nil when there is none
	slices  []*collect.EndpointSlice
}

// take returns the Services that changed, or with full all of them, as they are
// now, and forgets what was pending.
func (in *inputs) take(full bool) map[types.NamespacedName]input {
	in.mu.Lock()
	defer in.mu.Unlock()
	out := map[types.NamespacedName]input{}
	for name := range in.pending {
		out[name] = in.get(name)
	}
	clear(in.pending)
	if full {
		for name := range in.services {
			out[name] = in.get(name)
		}
	}
	return out
}

// takeUDP reports whether the endpoints of a UDP port changed, and forgets it.
func (in *inputs) takeUDP() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	was := in.udp
	in.udp = false
	return was
}

// all is every Service as it is now.
func (in *inputs) all() map[types.NamespacedName]input {
	in.mu.Lock()
	defer in.mu.Unlock()
	out := make(map[types.NamespacedName]input, len(in.services))
	for name := range in.services {
		out[name] = in.get(name)
	}
	return out
}

// get returns what is known of a Service, its slices by name. in.mu is held.
func (in *inputs) get(name types.NamespacedName) input {
	names := make([]types.NamespacedName, 0, len(in.of[name]))
	for n := range in.of[name] {
		names = append(names, n)
	}
	slices.SortFunc(names, func(a, b types.NamespacedName) int { return cmp.Compare(a.Name, b.Name) })
	out := input{service: in.services[name]}
	for _, n := range names {
		out.slices = append(out.slices, in.slices[n])
	}
	return out
}

// sameService reports that two versions of a Service lead to the same rules,
// given the same slices.
func sameService(a, b *collect.Service) bool {
	if a == nil || b == nil {
		return a == b
	}
	strip := func(s collect.Service) collect.Service {
		return collect.Service{
			Kind: s.Kind, Ports: s.Ports, ClusterIPs: s.ClusterIPs, Families: s.Families, ExternalIPs: s.ExternalIPs,
			LoadBalancerIPs: s.LoadBalancerIPs, Headless: s.Headless, InternalPolicy: s.InternalPolicy,
			ExternalPolicy: s.ExternalPolicy, SessionAffinity: s.SessionAffinity,
			AffinityTimeout: s.AffinityTimeout, ProxyName: s.ProxyName, SourceRanges: s.SourceRanges, HealthCheckPort: s.HealthCheckPort,
		}
	}
	return reflect.DeepEqual(strip(*a), strip(*b))
}

// sameSlice reports that two versions of a slice lead to the same rules.
func sameSlice(a, b *collect.EndpointSlice) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Service == b.Service && a.Family == b.Family && a.Headless == b.Headless &&
		reflect.DeepEqual(a.Ports, b.Ports) && reflect.DeepEqual(a.Endpoints, b.Endpoints)
}

// count is how many Services have changes.
func (in *inputs) count() int {
	in.mu.Lock()
	defer in.mu.Unlock()
	return len(in.pending)
}
