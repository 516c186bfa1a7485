package timeline

import (
	"maps"
	"slices"
	"strings"

	"github.com/kconverge/kconverge/collect"
)

// namespace holds the objects of one namespace with the indexes that keep an
// event's cost with the Services it touches.
type namespace struct {
	pods map[string]*podState
	// podsByLabel lists pods by each of their labels, for a Service that
	// comes or changes its selector.
	podsByLabel map[string]map[*podState]struct{}
	services    map[string]*service
	// slices maps a slice's name to the Service it belongs to.
	slices map[string]*service
	loads  map[loadKey]*workload
	// byLabel lists Services by one label of their selector, so that a pod
	// finds those that may select it by its own labels.
	byLabel map[string][]*service
	// unselected are the pods that no Service selects, in their immutable form;
	// nil when they have to be listed anew.
	unselected []PodFacts `graph:"-"`
}

func (m *Model) ns(name string) *namespace {
	n := m.namespace[name]
	if n == nil {
		n = &namespace{
			pods: map[string]*podState{}, podsByLabel: map[string]map[*podState]struct{}{}, services: map[string]*service{},
			slices: map[string]*service{}, byLabel: map[string][]*service{}, loads: map[loadKey]*workload{},
		}
		m.namespace[name] = n
	}
	return n
}

// service returns the Service's record, making one when a slice or a rule is
// known before the Service itself.
func (m *Model) service(namespace, name string) *service {
	n := m.ns(namespace)
	s := n.services[name]
	if s == nil {
		s = newService(m, namespace, name)
		s.heardOf = m.at
		n.services[name] = s
		i, _ := slices.BinarySearchFunc(m.services, s, func(a, b *service) int {
			if c := strings.Compare(a.namespace, b.namespace); c != 0 {
				return c
			}
			return strings.Compare(a.name, b.name)
		})
		m.services = slices.Insert(m.services, i, s)
	}
	return s
}

// indexLabel is the selector label under which a Service is listed: the first
// by key, or "" when it selects nothing.
func indexLabel(spec *collect.Service) string {
	if spec == nil || len(spec.Selector) == 0 {
		return ""
	}
	first := ""
	for k := range spec.Selector {
		if first == "" || k < first {
			first = k
		}
	}
	return first + "=" + spec.Selector[first]
}

func (n *namespace) index(s *service, spec *collect.Service) {
	label := indexLabel(spec)
	if label == s.indexed {
		return
	}
	if s.indexed != "" {
		n.byLabel[s.indexed] = slices.DeleteFunc(n.byLabel[s.indexed], func(x *service) bool { return x == s })
		if len(n.byLabel[s.indexed]) == 0 {
			delete(n.byLabel, s.indexed)
		}
	}
	if s.indexed = label; label != "" {
		n.byLabel[label] = append(n.byLabel[label], s)
	}
}

// indexPod keeps the index of pods by label.
func (n *namespace) indexPod(p *podState, old, now map[string]string) {
	if maps.Equal(old, now) {
		return
	}
	for k, v := range old {
		label := k + "=" + v
		delete(n.podsByLabel[label], p)
		if len(n.podsByLabel[label]) == 0 {
			delete(n.podsByLabel, label)
		}
	}
	for k, v := range now {
		label := k + "=" + v
		if n.podsByLabel[label] == nil {
			n.podsByLabel[label] = map[*podState]struct{}{}
		}
		n.podsByLabel[label][p] = struct{}{}
	}
}

// selecting lists the Services that exist and select the labels, by name.
func (n *namespace) selecting(labels map[string]string) []*service {
	var out []*service
	for k, v := range labels {
		for _, s := range n.byLabel[k+"="+v] {
			if s.selects(labels) {
				out = append(out, s)
			}
		}
	}
	slices.SortFunc(out, func(a, b *service) int { return strings.Compare(a.name, b.name) })
	return out
}
