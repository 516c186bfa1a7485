package nodelog

import (
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/kconverge/kconverge/collect"
)

const (
	// pastMost is how many changes of the past are kept of one node, and
	// pastFor for how long before the last line. A change takes some 100 bytes.
	// pastGaps is how many gaps are.
	pastMost = 2000
	pastFor  = time.Hour
	pastGaps = 200
	// pastBetter is by how much the bound of a clock must move for the past to be
	// told once more, and pastAgain for how long after the viewer came it can be.
	pastBetter = 50 * time.Millisecond
	pastAgain  = time.Minute
)

// history is what the lines from before the viewer came tell of changes. Its
// times are on the node's clock; they are mapped when it is told, because only
// then it is known how.
type history struct {
	// from is since when everything is told; zero while that is not so.
	from    time.Time
	base    map[serviceName]int // what a Service had before its first change
	changes []lineChange        // by time
	gaps    []lineGap           // by time
	dropped int

	// ports names the ports of each Service that was touched, touched says what
	// the Service was before the line, or before the lines in doubt.
	ports   map[serviceName][]string
	touched map[serviceName]routed
}

type serviceName struct{ namespace, service string }

type lineChange struct {
	at, notBefore time.Time
	service       serviceName
	generation    uint32
	endpoints     int
}

// lineGap is a stretch of which lines are missing; a zero to means that it is
// open.
type lineGap struct {
	from, to time.Time
	why      string
}

// routed is what a node does for a Service.
type routed struct {
	endpoints int
	digests   string
}

// start begins anew: nothing before t is told.
func (h *history) start(t time.Time) {
	*h = history{
		from: t, dropped: h.dropped + len(h.changes),
		base: map[serviceName]int{}, ports: map[serviceName][]string{}, touched: map[serviceName]routed{},
	}
}

// stop forgets everything until the next start.
func (h *history) stop() { *h = history{dropped: h.dropped + len(h.changes)} }

// touch notes that the port's Service is about to change in the table.
func (h *history) touch(t *table, k *collect.RulePortKey) {
	if h.from.IsZero() {
		return
	}
	n := serviceName{k.Namespace, k.Service}
	if h.ports[n] == nil {
		prefix := n.namespace + "\x00" + n.service + "\x00"
		h.ports[n] = t.namesOf(prefix)
	}
	if _, ok := h.touched[n]; !ok {
		h.touched[n] = h.routed(t, n)
	}
	if name := nameOf(k); !slices.Contains(h.ports[n], name) {
		h.ports[n] = append(h.ports[n], name)
		slices.Sort(h.ports[n])
	}
}

// touchAll notes that all of the table is about to change.
func (h *history) touchAll(t *table) {
	if h.from.IsZero() {
		return
	}
	fresh := map[serviceName][]string{}
	for name, p := range t.each() {
		if n := (serviceName{p.Namespace, p.Service}); h.ports[n] == nil {
			fresh[n] = append(fresh[n], name)
		}
	}
	for n, names := range fresh {
		slices.Sort(names)
		h.ports[n] = names
	}
	for _, p := range t.each() {
		h.touch(t, &p.RulePortKey)
	}
}

// routed tells what the table has for a Service whose ports are known. The
// addresses of all ports are counted once each, as the model counts them.
func (h *history) routed(t *table, n serviceName) routed {
	var r routed
	addrs := map[netip.Addr]struct{}{}
	for _, name := range h.ports[n] {
		p := t.find(name)
		if p == nil {
			continue
		}
		r.digests += name + p.digest
		for _, e := range p.Endpoints {
			addrs[e.Addr().Unmap()] = struct{}{}
		}
	}
	r.endpoints = len(addrs)
	return r
}

// write notes what has changed of the Services that were touched.
func (h *history) write(t *table, at, notBefore time.Time, generation uint32) {
	names := slices.SortedFunc(maps.Keys(h.touched), func(a, b serviceName) int {
		return strings.Compare(a.namespace+"\x00"+a.service, b.namespace+"\x00"+b.service)
	})
	for _, n := range names {
		was, is := h.touched[n], h.routed(t, n)
		if was.digests == is.digests {
			continue
		}
		if _, ok := h.base[n]; !ok {
			h.base[n] = was.endpoints
		}
		h.changes = append(h.changes, lineChange{at: at, notBefore: notBefore, service: n, generation: generation, endpoints: is.endpoints})
	}
	clear(h.touched)
	clear(h.ports) // or it would grow to all Services of the node
	for len(h.changes) > pastMost || len(h.changes) > 0 && at.Sub(h.changes[0].at) > pastFor {
		h.forget(h.changes[0].at)
	}
}

// miss notes a gap. Its end may be told before, by what the agent lost.
func (h *history) miss(g lineGap) {
	if h.from.IsZero() {
		return
	}
	h.gaps = append(h.gaps, g)
	if len(h.gaps) > pastGaps {
		h.forget(h.gaps[0].to)
	}
}

// forget makes the past begin at t.
func (h *history) forget(t time.Time) {
	n := 0
	for n < len(h.changes) && !h.changes[n].at.After(t) {
		h.base[h.changes[n].service] = h.changes[n].endpoints
		n++
	}
	h.changes, h.dropped, h.from = h.changes[n:], h.dropped+n, t
	h.gaps = slices.DeleteFunc(h.gaps, func(g lineGap) bool { return !g.to.IsZero() && !g.to.After(t) })
}

// set, share and clear are those of the table; what they change is remembered
// as long as the past lasts.
func (s *stream) set(p collect.RulePort) {
	if s.past {
		s.hist.touch(&s.table, &p.RulePortKey)
	}
	s.table.set(p)
}

func (s *stream) share(p *port) {
	if s.past {
		s.hist.touch(&s.table, &p.RulePortKey)
	}
	s.table.share(p)
}

func (s *stream) clear() {
	if s.past {
		s.hist.touchAll(&s.table)
	}
	s.table.clear()
}

// chronicle is called at the end of each line about rules. What changed while
// something was missing is told as of when all is known again; the gap before it
// says why.
func (s *stream) chronicle(e collect.Event) {
	switch {
	case !s.past:
	case !s.whole || s.rules.Elsewhere() != "":
		s.hist.stop()
	case s.doubt != nil:
	case s.hist.from.IsZero():
		s.hist.start(e.At)
	default:
		s.hist.write(&s.table, e.At, e.NotBefore, s.rules.Generation)
	}
}

// forgetPast gives up what was told before a line, because the node's clock is
// another one since: times from before cannot be brought to the viewer's.
func (s *stream) forgetPast(lineAt time.Time) {
	switch {
	case s.hist.from.IsZero():
	case s.past:
		s.hist.start(lineAt)
	default:
		s.hist.stop()
	}
}

// tellPast hands the past over, and does so once more when the clock's bound
// comes out to be another one: with a clock that is bounded by the logs alone
// the first live line tells much better how far it is off.
func (s *stream) tellPast(at time.Time) {
	if s.past || s.hist.from.IsZero() {
		return
	}
	told := s.pastTold
	switch {
	case at.Sub(s.came) > pastAgain:
		s.hist.stop()
		return
	case told != nil && told.OneSided == s.told.OneSided && (told.Offset-s.told.Offset).Abs() < pastBetter:
		return
	}
	bound := s.told
	s.pastTold = &bound
	h := &s.hist
	if h.from.Before(s.cameLine) {
		p := &collect.RulesPast{Node: s.node, From: s.mapped(h.from), FromError: s.pastError(h.from), OneSided: bound.OneSided, Dropped: h.dropped}
		began := map[serviceName]bool{}
		for _, c := range h.changes {
			if n := c.service; !began[n] {
				began[n] = true
				p.Changes = append(p.Changes, collect.PastChange{At: p.From, Error: p.FromError, Namespace: n.namespace, Service: n.service, Endpoints: h.base[n]})
			}
		}
		for _, c := range h.changes {
			x := collect.PastChange{
				At: s.mapped(c.at), Error: s.pastError(c.at), Generation: c.generation,
				Namespace: c.service.namespace, Service: c.service.service, Endpoints: c.endpoints,
			}
			if !c.notBefore.IsZero() {
				x.NotBefore = s.mapped(c.notBefore)
			}
			p.Changes = append(p.Changes, x)
		}
		for _, g := range h.gaps {
			x := collect.Gap{From: s.mapped(g.from), Why: g.why}
			if !g.to.IsZero() {
				x.To = s.mapped(g.to)
			}
			p.Gaps = append(p.Gaps, x)
		}
		s.emit(s.emitted, time.Time{}, p)
	}
	if !bound.OneSided {
		s.hist.stop()
	}
}

// pastError is how far the mapped time of a past line may be off. The bound is
// that of now; since then the clocks may have drifted apart.
func (s *stream) pastError(lineAt time.Time) time.Duration {
	if s.told.How == oneClock {
		return s.told.Error
	}
	return s.told.Error + drift(s.cameLine.Sub(lineAt))
}
