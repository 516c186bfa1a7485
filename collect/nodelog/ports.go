package nodelog

import (
	"maps"
	"slices"
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
	if p.users--; p.users == 0 {
		delete(k.ports, portID{p.RulePortKey, p.digest})
	}
}

// table is what one node's rules do, by the name of the key. The names are
// those of the shared sets, so that a node costs little.
type table struct {
	known *known
	ports map[string]*port
}

func nameOf(k *collect.RulePortKey) string {
	return strings.Join([]string{k.Namespace, k.Service, k.Port, string(k.Protocol), string(k.Family), string(k.Policy)}, "\x00")
}

func (t *table) get(k *collect.RulePortKey) *port { return t.ports[nameOf(k)] }

func (t *table) set(p collect.RulePort) {
	name := nameOf(&p.RulePortKey)
	old := t.ports[name]
	if p.Empty() {
		delete(t.ports, name)
	} else {
		kept := t.known.keep(p)
		t.ports[kept.name] = kept
	}
	t.known.release(old)
}

// share takes a set that was found among those of others.
func (t *table) share(p *port) {
	t.known.release(t.ports[p.name])
	t.ports[p.name] = p
}

func (t *table) clear() {
	for _, p := range t.ports {
		t.known.release(p)
	}
	clear(t.ports)
}

func (t *table) all() []collect.RulePort {
	out := make([]collect.RulePort, 0, len(t.ports))
	for _, p := range t.ports {
		out = append(out, p.RulePort)
	}
	slices.SortFunc(out, func(a, b collect.RulePort) int { return a.RulePortKey.Compare(b.RulePortKey) })
	return out
}

// beside lists the keys of the table that a keyframe does not have.
func (t *table) beside(ports []collect.KeyPort) []collect.RulePortKey {
	rest := maps.Clone(t.ports)
	for i := range ports {
		delete(rest, nameOf(&ports[i].RulePortKey))
	}
	var out []collect.RulePortKey
	for _, p := range rest {
		out = append(out, p.RulePortKey)
	}
	slices.SortFunc(out, collect.RulePortKey.Compare)
	return out
}
