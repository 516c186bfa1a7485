package lanes

import (
	"net/netip"
	"slices"
	"time"

	"github.com/kconverge/kconverge/engine/timeline"
)

// Fallback is what a Service's rules rest on while none of its endpoints is
// ready: the pods that terminate and still serve (CategorizeEndpoints in
// Kubernetes' pkg/proxy/topology.go). The slices call none of them ready then,
// so that the numbers of slices and rules rightly differ.
type Fallback struct {
	// N is how many endpoints should be routed to, by the pods' word.
	N int
	// Pods is how many pods that is: one of two families has two endpoints.
	Pods int
	// IPs are their addresses, sorted, as far as any node's rules tell.
	IPs []netip.Addr
	// Routed: the rules of every node that is seen have all of them.
	Routed bool
}

// FallbackAt finds the fallback that holds at t; ok is false without one.
func FallbackAt(svc *timeline.Service, t time.Time) (f Fallback, ok bool) {
	n, known := valueAt(svc.Wanted, t)
	if !known || n == 0 || svc.Slices == nil || !svc.RoutedByProxy {
		return f, false
	}
	if c, seen := svc.Slices.At(t); !seen || c.Knowledge != timeline.Known || c.Want > 0 {
		return f, false
	}
	f.N = n
	planes, pods := 0, map[string]bool{}
	f.Routed = true
	for _, p := range svc.Rules.All() {
		if c, seen := p.At(t); !seen || c.Knowledge != timeline.Known {
			continue
		}
		planes++
		have := 0
		for i := range p.Members {
			m := &p.Members[i]
			if s := m.At(t); s.Want && m.Endpoint.IP.IsValid() {
				f.IPs = append(f.IPs, m.Endpoint.IP)
				pods[m.Endpoint.UID] = true
				if s.Have {
					have++
				}
			}
		}
		f.Routed = f.Routed && have >= n
	}
	f.Routed = f.Routed && planes > 0
	if f.Pods = len(pods); f.Pods == 0 {
		f.Pods = n
	}
	slices.SortFunc(f.IPs, netip.Addr.Compare)
	f.IPs = slices.Compact(f.IPs)
	return f, true
}

// Text says in plain words what holds; short is the same where there is little
// room.
func (f Fallback) Text() (long, short string) {
	verb := "should be routed to"
	if f.Routed {
		verb = "are still routed to"
		if f.Pods == 1 {
			verb = "is still routed to"
		}
	}
	pods := Plural(f.Pods, "terminating pod")
	return "fallback: nothing is ready, " + pods + " " + verb, "fallback to " + pods
}

// Moved tells whether a path is about routing: it made an endpoint routable or
// not, or it kept one by a fallback.
func Moved(svc *timeline.Service, p *timeline.Path) bool {
	return p.Op != timeline.OpChange || KeptByFallback(svc, p)
}

// KeptByFallback tells whether a path left its endpoint routed to only because
// nothing else was ready.
func KeptByFallback(svc *timeline.Service, p *timeline.Path) bool {
	if p.Op != timeline.OpChange {
		return false
	}
	if p.Cause == timeline.CausePodTerminating {
		end := p.End()
		if end.IsZero() {
			end = p.Origin.At
		}
		_, ok := FallbackAt(svc, end)
		return ok
	}
	return p.Cause == timeline.CauseFallback
}

// PathCause is the cause of a Service's path in plain words; where a fallback
// kept its endpoint, it says so.
func PathCause(svc *timeline.Service, p *timeline.Path) string {
	if KeptByFallback(svc, p) {
		return "kept by fallback"
	}
	return CauseText(p.Cause)
}
