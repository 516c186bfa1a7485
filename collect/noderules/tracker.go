package noderules

import (
	"fmt"
	"slices"

	"github.com/kconverge/kconverge/collect"
)

// tracker follows the generations of one network namespace: it holds the
// mirror of the claimed tables and their resolution. It reads no clock and
// talks to nobody. It is not safe for concurrent use.
type tracker struct {
	gen    uint32
	tables map[tableKey]*tracked
	// layouts are all of the registry, in its order. Those that are polled
	// have tables that are not in tables.
	layouts []*kept
	// shown is the layout that is told of, nil when none is there; noLayout is
	// what there is instead.
	shown    *kept
	noLayout string
	// unread says why the polled tables could not be read.
	unread string
	// pending are the messages about claimed tables since the last NEWGEN.
	pending []message
	// odd is the last list of what could not be tied to a Service.
	odd []string
	// replayable allows the generation that a dump stood at to be applied
	// again: its last part can reach the socket after the dump.
	replayable bool
}

// tracked is one table and its resolver.
type tracked struct {
	table    *table
	resolver resolver
	layout   string
}

// newTracker resolves a dump taken at generation gen. known are Service ports
// whose names may be missing from the rules.
func newTracker(gen uint32, tables []*table, known ...kpPort) *tracker {
	t := &tracker{gen: gen, tables: map[tableKey]*tracked{}, replayable: true}
	for _, l := range layouts {
		k := &kept{layout: l}
		open := l.opener(known)
		for _, key := range l.tables {
			tr := &tracked{table: newTable(key), resolver: open(key), layout: l.name}
			k.tables = append(k.tables, tr)
			if !l.polled {
				t.tables[key] = tr
			}
		}
		t.layouts = append(t.layouts, k)
	}
	for _, tb := range tables {
		if tr := t.tables[tb.key]; tr != nil {
			tr.table = tb
		}
	}
	t.conclude(&generation{})
	return t
}

// nextGen is the generation after g: the kernel leaves 0 out.
func nextGen(g uint32) uint32 {
	if g++; g == 0 {
		return 1
	}
	return g
}

// older reports whether generation a is before b; ids wrap around.
func older(a, b uint32) bool { return int32(a-b) < 0 }

// generation is what one committed generation came to.
type generation struct {
	id      uint32
	pid     uint32
	process string
	// ports are the ports that changed, sorted; oddChanged says that the
	// list of unknown things did, too.
	ports      []collect.RulePort
	oddChanged bool
	// layoutChanged says that another layout is told of, or none.
	layoutChanged bool
}

func (g *generation) changes() bool { return len(g.ports) > 0 || g.oddChanged || g.layoutChanged }

// lostTrack says why the messages so far do not lead to a certain state any
// more. Only a new dump helps.
type lostTrack struct{ why string }

func (e *lostTrack) Error() string { return e.why }

// add takes the next message. It returns a generation when the message closed
// one that is news, and a *lostTrack when messages are missing.
func (t *tracker) add(m message) (*generation, error) {
	if m.kind != msgNewGen {
		if _, ok := t.tables[tableKey{m.family, m.table}]; ok {
			t.pending = append(t.pending, m)
		}
		return nil, nil
	}
	pending := t.pending
	t.pending = nil
	again := t.replayable && m.gen == t.gen
	switch {
	case older(m.gen, t.gen), m.gen == t.gen && !again:
		return nil, nil
	case !again && m.gen != nextGen(t.gen):
		return nil, &lostTrack{fmt.Sprintf("generation %d came after %d", m.gen, t.gen)}
	}
	for i := range pending {
		if pending[i].genLow == uint16(m.gen) {
			continue
		}
		if again {
			// The first generation after joining can have been cut.
			pending = nil
			break
		}
		return nil, &lostTrack{fmt.Sprintf("messages of another generation came before the end of generation %d", m.gen)}
	}
	if !again {
		t.replayable = false
	}
	t.gen = m.gen
	g := &generation{id: m.gen, pid: m.pid, process: collect.Plain(m.process)}
	for i := range pending {
		if !t.tables[tableKey{pending[i].family, pending[i].table}].table.apply(&pending[i]) {
			return nil, &lostTrack{fmt.Sprintf("generation %d renamed chain %s", m.gen, collect.Plain(pending[i].chain))}
		}
	}
	if len(pending) > 0 {
		t.conclude(g)
	}
	return g, nil
}

// difference lists what is otherwise in now than in was: the complete new state
// of each such port, empty for those that went. Both are sorted.
func difference(was, now []collect.RulePort) []collect.RulePort {
	before := make(map[collect.RulePortKey]*collect.RulePort, len(was))
	for i := range was {
		before[was[i].RulePortKey] = &was[i]
	}
	var out []collect.RulePort
	for i := range now {
		old := before[now[i].RulePortKey]
		delete(before, now[i].RulePortKey)
		if old == nil || !old.Equal(&now[i]) {
			out = append(out, now[i])
		}
	}
	for key := range before {
		out = append(out, collect.RulePort{RulePortKey: key})
	}
	sortPorts(out)
	return out
}

func sortPorts(ports []collect.RulePort) {
	slices.SortFunc(ports, func(a, b collect.RulePort) int { return a.RulePortKey.Compare(b.RulePortKey) })
}
