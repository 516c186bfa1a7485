package kube

import (
	"maps"
	"sync"

	"github.com/kconverge/kconverge/collect"
)

// sharer lets pods that come one after the other have their labels and their
// owner in common where these are the same. Lists come by name, so that most pods
// of an owner do; in a large cluster that is a good part of what a pod takes. It
// is safe for concurrent use.
type sharer struct {
	mu   sync.Mutex
	last *collect.Pod
}

// share gives a payload that nobody has yet what it has in common with the last.
func (s *sharer) share(payload collect.Payload) {
	p, ok := payload.(*collect.Pod)
	if !ok {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if q := s.last; q != nil {
		if maps.Equal(p.Labels, q.Labels) {
			p.Labels = q.Labels
		}
		if p.Owner != nil && q.Owner != nil && *p.Owner == *q.Owner {
			p.Owner = q.Owner
		}
	}
	s.last = p
}
