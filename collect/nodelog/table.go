package nodelog

import (
	"iter"
	"slices"
	"strings"
	"sync"

	"github.com/kconverge/kconverge/collect"
)

// table is what one node's rules do, by the name of the key. Most nodes do the
// same: a table is a sheet, which it shares with others, and what differs from
// that. So a node costs what it has for itself, and not a place for each port
// of the cluster.
type table struct {
	known *known
	base  *sheet           // nil for none
	own   map[string]*port // in the place of the sheet's, or beside them; nil where it has none
	n     int              // ports
}

// sheet is a whole table. It is not written once it is made.
type sheet struct {
	ports []*port // by name
	by    map[string]*port
	users int // tables, under the lock of known

	once sync.Once
	list []collect.RulePort
}

// shareOf is what part of a sheet a table may have otherwise and still build on it.
const shareOf = 4

func newTable(k *known) table { return table{known: k, own: map[string]*port{}} }

func (t *table) find(name string) *port {
	if p, ok := t.own[name]; ok || t.base == nil {
		return p
	}
	return t.base.by[name]
}

func (t *table) get(k *collect.RulePortKey) *port { return t.find(nameOf(k)) }

// each gives all ports, in no order.
func (t *table) each() iter.Seq2[string, *port] {
	return func(yield func(string, *port) bool) {
		if t.base != nil {
			for _, p := range t.base.ports {
				if _, ok := t.own[p.name]; !ok && !yield(p.name, p) {
					return
				}
			}
		}
		for name, p := range t.own {
			if p != nil && !yield(name, p) {
				return
			}
		}
	}
}

// namesOf lists the names that begin so, sorted.
func (t *table) namesOf(prefix string) (out []string) {
	if t.base != nil {
		i, _ := slices.BinarySearchFunc(t.base.ports, prefix, func(p *port, s string) int { return strings.Compare(p.name, s) })
		for ; i < len(t.base.ports) && strings.HasPrefix(t.base.ports[i].name, prefix); i++ {
			if name := t.base.ports[i].name; t.find(name) != nil {
				out = append(out, name)
			}
		}
	}
	for name, p := range t.own {
		if p != nil && strings.HasPrefix(name, prefix) && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// put puts p, whose user the table becomes, under the name; nil takes what is
// there away.
func (t *table) put(name string, p *port) {
	if t.find(name) != nil {
		t.n--
	}
	if p != nil {
		t.n++
	}
	t.known.release(t.own[name])
	switch inBase := t.base != nil && t.base.by[name] != nil; {
	case p == nil && !inBase, inBase && t.base.by[name] == p:
		t.known.release(p) // the sheet has it
		delete(t.own, name)
	default:
		t.own[name] = p
	}
}

func (t *table) set(p collect.RulePort) {
	if p.Empty() {
		t.put(nameOf(&p.RulePortKey), nil)
		return
	}
	kept := t.known.keep(p)
	t.put(kept.name, kept)
}

// share takes a set that was found among those of others.
func (t *table) share(p *port) { t.put(p.name, p) }

func (t *table) clear() {
	for _, p := range t.own {
		t.known.release(p)
	}
	clear(t.own)
	t.leave()
	t.n = 0
}

// leave gives the sheet up.
func (t *table) leave() {
	if t.base != nil {
		t.known.leave(t.base)
		t.base = nil
	}
}

func (k *known) leave(s *sheet) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if s.users--; s.users > 0 {
		return
	}
	for _, p := range s.ports {
		k.drop(p)
	}
	if k.sheet == s {
		k.sheet = nil
	}
}

// settle builds the table on a sheet: on the latest that any node has, if it is
// much the same, else on one of its own, which is the latest then. It is called
// after all of the table was told.
func (t *table) settle() {
	k := t.known
	k.mu.Lock()
	latest := k.sheet
	if latest != nil {
		latest.users++ // so that it stays
	}
	k.mu.Unlock()
	if latest != nil && latest == t.base {
		k.leave(latest)
	} else if latest != nil && t.rebase(latest) {
		return
	}
	if t.base != nil && len(t.own) <= len(t.base.ports)/shareOf {
		return
	}
	s := &sheet{by: make(map[string]*port, t.n), users: 1} // which becomes the table's
	for name, p := range t.each() {
		s.by[name] = p
		s.ports = append(s.ports, p)
	}
	slices.SortFunc(s.ports, func(a, b *port) int { return strings.Compare(a.name, b.name) })
	k.mu.Lock()
	for _, p := range s.ports {
		p.users++
	}
	k.sheet = s
	k.mu.Unlock()
	t.take(s, map[string]*port{})
}

// rebase builds the table on another sheet, whose user the caller is, if they do
// not differ in too much. Else the sheet is given back.
func (t *table) rebase(s *sheet) bool {
	own, most := map[string]*port{}, len(s.ports)/shareOf
	for name, p := range t.each() {
		if s.by[name] != p {
			own[name] = p
		}
		if len(own) > most {
			t.known.leave(s)
			return false
		}
	}
	if t.n-len(own) < len(s.ports) {
		for name := range s.by {
			if t.find(name) == nil {
				own[name] = nil
			}
		}
	}
	if len(own) > most {
		t.known.leave(s)
		return false
	}
	t.take(s, own)
	return true
}

// take moves the table to a sheet, whose user the caller is, without changing what
// is in it.
func (t *table) take(s *sheet, own map[string]*port) {
	k := t.known
	k.mu.Lock()
	for _, p := range own {
		if p != nil {
			p.users++
		}
	}
	k.mu.Unlock()
	for _, p := range t.own {
		k.release(p)
	}
	t.leave()
	t.base, t.own = s, own
}

// all lists the ports by key. The list may be that of other tables, too: it is not
// to be changed.
func (t *table) all() []collect.RulePort {
	if t.base != nil && len(t.own) == 0 {
		t.base.once.Do(func() { t.base.list = listed(len(t.base.ports), t.each()) })
		return t.base.list
	}
	return listed(t.n, t.each())
}

func listed(n int, ports iter.Seq2[string, *port]) []collect.RulePort {
	out := make([]collect.RulePort, 0, n)
	for _, p := range ports {
		out = append(out, p.RulePort)
	}
	slices.SortFunc(out, func(a, b collect.RulePort) int { return a.RulePortKey.Compare(b.RulePortKey) })
	return out
}

// beside lists the keys of the table that a keyframe does not have.
func (t *table) beside(ports []collect.KeyPort) []collect.RulePortKey {
	there := make(map[string]struct{}, len(ports))
	for i := range ports {
		there[nameOf(&ports[i].RulePortKey)] = struct{}{}
	}
	var out []collect.RulePortKey
	for name, p := range t.each() {
		if _, ok := there[name]; !ok {
			out = append(out, p.RulePortKey)
		}
	}
	slices.SortFunc(out, collect.RulePortKey.Compare)
	return out
}
