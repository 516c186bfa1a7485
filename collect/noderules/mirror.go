package noderules

import "time"

// tableKey names one table.
type tableKey struct {
	family uint8
	name   string
}

// mirror is a copy of the tables that some layout claims. It is changed by
// applying messages in the order in which the kernel sent them. Applying the
// messages of a generation (or its last part) again to a mirror that already
// contains it changes nothing, because objects are told apart by handle: that
// is what lets a dump and the notifications overlap.
type mirror struct {
	tables map[tableKey]*table
}

// table is one table's content, and what changed in it since touched was last
// taken.
type table struct {
	key     tableKey
	exists  bool
	dormant bool
	chains  map[string]*chain
	handles map[uint64]string // chain handle -> name
	sets    map[string]*set
	touched touched
	// xt says that the rules are those of iptables: they are kept as xtRule,
	// and sets are not kept.
	xt bool
}

// chain is one chain. Its rules' order is not kept: the layouts need none.
type chain struct {
	handle uint64
	hook   *hook
	rules  []rule
	// top is the highest handle of a rule so far: a rule above it is new.
	top uint64
}

type rule struct {
	handle  uint64
	exprs   []expr
	comment string
	xt      *xtRule // instead of exprs in a table of iptables
}

// set is one set or map; elements by key.
type set struct {
	handle uint64
	flags  uint32
	// timeout is for how long an element stays, 0 for ever.
	timeout time.Duration
	elems   map[string]element
}

func (s *set) anonymous() bool { return s.flags&setAnonymous != 0 }

// touched names what a generation changed: the cost of a resolution follows it.
type touched struct {
	all    bool // everything: after a dump, or when the table came or went
	chains map[string]struct{}
	sets   map[string]struct{}            // as a whole
	elems  map[string]map[string]struct{} // set name -> keys
}

func (t *touched) empty() bool {
	return !t.all && len(t.chains) == 0 && len(t.sets) == 0 && len(t.elems) == 0
}

func (t *touched) chain(name string) {
	if t.all {
		return
	}
	if t.chains == nil {
		t.chains = map[string]struct{}{}
	}
	t.chains[name] = struct{}{}
}

func (t *touched) set(name string) {
	if t.all {
		return
	}
	if t.sets == nil {
		t.sets = map[string]struct{}{}
	}
	t.sets[name] = struct{}{}
}

func (t *touched) elem(set, key string) {
	if t.all {
		return
	}
	if t.elems == nil {
		t.elems = map[string]map[string]struct{}{}
	}
	if t.elems[set] == nil {
		t.elems[set] = map[string]struct{}{}
	}
	t.elems[set][key] = struct{}{}
}

func newTable(key tableKey) *table {
	l, _ := layoutOf(key)
	return &table{key: key, chains: map[string]*chain{}, handles: map[uint64]string{}, sets: map[string]*set{}, touched: touched{all: true}, xt: l.xt}
}

// take returns what was touched and starts anew.
func (t *table) take() touched {
	was := t.touched
	t.touched = touched{}
	return was
}

// clear forgets the content: the table was deleted.
func (t *table) clear() {
	*t = *newTable(t.key)
}

// apply changes the table by one message about it. It returns false when the
// message cannot be followed (a chain was renamed: what refers to it changes
// its text without a message of its own), so that only a new dump helps.
func (t *table) apply(m *message) bool {
	switch m.kind {
	case msgNewTable:
		if dormant := m.flags&tableDormant != 0; !t.exists || t.dormant != dormant {
			t.exists, t.dormant = true, dormant
			t.touched = touched{all: true}
		}
	case msgDelTable:
		t.clear()
	case msgNewChain:
		return t.newChain(m)
	case msgDelChain:
		if c := t.chains[m.chain]; c != nil && c.handle == m.handle {
			delete(t.chains, m.chain)
			delete(t.handles, m.handle)
			t.touched.chain(m.chain)
		}
	case msgNewRule:
		t.newRule(m)
	case msgDelRule:
		t.delRule(m)
	case msgNewSet:
		t.newSet(m)
	case msgDelSet:
		t.delSet(m)
	case msgNewSetElem, msgDelSetElem:
		t.elements(m)
	}
	return true
}

func (t *table) newChain(m *message) bool {
	c := t.chains[m.chain]
	if c == nil || c.handle != m.handle {
		if name, ok := t.handles[m.handle]; ok && name != m.chain {
			return false
		}
		t.handles[m.handle] = m.chain
		t.chains[m.chain] = &chain{handle: m.handle, hook: m.hook}
		t.touched.chain(m.chain)
		return true
	}
	if (c.hook == nil) != (m.hook == nil) || (c.hook != nil && *c.hook != *m.hook) {
		c.hook = m.hook
		t.touched.chain(m.chain)
	}
	return true
}

func (t *table) newRule(m *message) {
	c := t.chains[m.chain]
	if c == nil {
		return
	}
	t.touched.chain(m.chain)
	r := rule{handle: m.handle, exprs: m.exprs, comment: m.comment}
	if t.xt {
		r = rule{handle: m.handle, xt: xtOfExprs(t.key.family, m.exprs, m.comment)}
	}
	if m.handle <= c.top {
		for i := range c.rules {
			if c.rules[i].handle == m.handle {
				c.rules[i] = r
				return
			}
		}
	}
	c.top = max(c.top, m.handle)
	c.rules = append(c.rules, r)
}

func (t *table) delRule(m *message) {
	c := t.chains[m.chain]
	if c == nil {
		return
	}
	for i := range c.rules {
		if c.rules[i].handle == m.handle {
			// Order is not kept, and a chain that is emptied can be long.
			last := len(c.rules) - 1
			c.rules[i] = c.rules[last]
			c.rules[last] = rule{}
			c.rules = c.rules[:last]
			t.touched.chain(m.chain)
			return
		}
	}
}

func (t *table) newSet(m *message) {
	if t.xt {
		return
	}
	if s := t.sets[m.set]; s != nil && s.handle == m.handle {
		s.flags = m.flags
		if s.timeout != m.timeout {
			s.timeout = m.timeout
			t.touched.set(m.set)
		}
		return
	}
	t.sets[m.set] = &set{handle: m.handle, flags: m.flags, timeout: m.timeout, elems: map[string]element{}}
	t.touched.set(m.set)
}

func (t *table) delSet(m *message) {
	s := t.sets[m.set]
	if s == nil {
		return
	}
	t.touched.set(m.set)
	if s.handle == m.handle {
		delete(t.sets, m.set)
		return
	}
	// The dump saw a later set of that name already. Elements that were applied
	// since belong to the one that goes; those of the later one are still to
	// come, after its creation.
	s.elems = map[string]element{}
}

// wanted tells which sets' elements are kept: all but those that packets fill
// (session affinity), which say nothing about where traffic may go.
func (s *set) wanted() bool { return s.flags&(setTimeout|setEval) == 0 }

func (t *table) elements(m *message) {
	s := t.sets[m.set]
	if s == nil || !s.wanted() {
		return
	}
	for _, e := range m.elems {
		k := string(e.key) + string(e.keyEnd)
		if e.flags&elemIntervalEnd != 0 {
			k += "end" // the end of one interval can be the start of the next
		}
		if m.kind == msgNewSetElem {
			s.elems[k] = e
		} else {
			delete(s.elems, k)
		}
		if s.anonymous() {
			t.touched.set(m.set)
		} else {
			t.touched.elem(m.set, k)
		}
	}
}
