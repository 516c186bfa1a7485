package nodelog

import (
	"strings"
	"sync"

	"github.com/kconverge/kconverge/collect"
)

// known are the routed sets that any node has, each kept once: most nodes route
// alike. A set that a keyframe names by its digest alone is found here. It is
// safe for concurrent use.
type known struct {
	mu    sync.Mutex
	ports map[portID]*port
	sheet *sheet // the latest whole table, see table.go
}

type portID struct {
	key    collect.RulePortKey
	digest string
}

// port is a routed set, shared by those who have it.
type port struct {
	collect.RulePort
	name   string // of its key
	digest string
	users  int
}

func newKnown() *known { return &known{ports: map[portID]*port{}} }

// keep returns the shared form of p; release gives it back.
func (k *known) keep(p collect.RulePort) *port {
	id := portID{p.RulePortKey, p.Digest()}
	k.mu.Lock()
	defer k.mu.Unlock()
	s := k.ports[id]
	if s == nil {
		s = &port{RulePort: p, name: nameOf(&p.RulePortKey), digest: id.digest}
		k.ports[id] = s
	}
	s.users++
	return s
}

// find returns the set with the digest, if some node has it, and keeps it.
func (k *known) find(key collect.RulePortKey, digest string) *port {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := k.ports[portID{key, digest}]
	if s != nil {
		s.users++
	}
	return s
}

func (k *known) release(p *port) {
	if p == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.drop(p)
}

// drop is release for who holds the lock.
func (k *known) drop(p *port) {
	if p.users--; p.users == 0 {
		delete(k.ports, portID{p.RulePortKey, p.digest})
	}
}

// nameOf is what a port is called in tables: those of a Service stand together.
func nameOf(k *collect.RulePortKey) string {
	return strings.Join([]string{k.Namespace, k.Service, k.Port, string(k.Protocol), string(k.Family), string(k.Policy)}, "\x00")
}
