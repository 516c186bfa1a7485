package timeline

import (
	"cmp"
	"slices"

	"github.com/kconverge/kconverge/collect"
)

// Facts are what the objects around a Service say, beside what becomes of it in the
// planes. They are shared with the model and must not be changed.
type Facts struct {
	// Pods are those that exist and are selected, by name.
	Pods []PodFacts
	// Slices are the Service's, by name.
	Slices []SliceFacts
	// Legacy is the Endpoints object, nil without one.
	Legacy *collect.Endpoints
	// Unselectable: the Service has no selector, or what it selects is not known.
	Unselectable bool
}

// PodFacts is what one pod says, and what the kubelet's Events say of its probes.
type PodFacts struct {
	Name, UID string
	Pod       *collect.Pod
	// Failed are its probes that failed; see Probe.
	Failed []Probe
}

// SliceFacts is what one EndpointSlice says.
type SliceFacts struct {
	Name  string
	Slice *collect.EndpointSlice
}

// facts are those of the Service now.
func (s *service) facts() Facts {
	f := Facts{Unselectable: !s.managed()}
	if n := len(s.members); n > 0 {
		f.Pods = make([]PodFacts, 0, n)
		for p := range s.members {
			f.Pods = append(f.Pods, s.m.podFacts(p))
		}
		sortPodFacts(f.Pods)
	}
	for _, sl := range s.sortedSlices() {
		f.Slices = append(f.Slices, SliceFacts{sl.name, sl.slice})
	}
	if s.legacy != nil {
		f.Legacy = s.legacy.obj
	}
	return f
}

func (m *Model) podFacts(p *podState) PodFacts {
	f := PodFacts{Name: p.name, UID: p.uid, Pod: p.pod}
	if probes := m.probes[p.uid]; probes != nil {
		f.Failed = probes.failed
	}
	return f
}

func sortPodFacts(list []PodFacts) {
	slices.SortFunc(list, func(a, b PodFacts) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID)) })
}

// relist makes the namespace's unselected pods be listed anew. What their status
// says meanwhile is not told: they are there for their labels.
func (m *Model) relist(n *namespace) { n.unselected, m.podsView = nil, nil }

// unselected is Snapshot.Unselected.
func (m *Model) unselected() map[string][]PodFacts {
	if m.podsView != nil {
		return m.podsView
	}
	m.podsView = map[string][]PodFacts{}
	for name, n := range m.namespace {
		if n.unselected == nil {
			n.unselected = []PodFacts{}
			for _, p := range n.pods {
				if len(p.selecting) == 0 {
					n.unselected = append(n.unselected, m.podFacts(p))
				}
			}
			sortPodFacts(n.unselected)
		}
		if len(n.unselected) > 0 {
			m.podsView[name] = n.unselected
		}
	}
	return m.podsView
}
