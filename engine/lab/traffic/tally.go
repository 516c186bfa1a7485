package traffic

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/kconverge/kconverge/collect"
)

// target is one TCP port of a Service at one of its ClusterIPs, or its NodePort at an
// address of the node.
type target struct {
	namespace, service string
	address            netip.AddrPort
}

func (t target) object() collect.ObjectKey {
	return collect.ObjectKey{Kind: "Service", Namespace: t.namespace, Name: t.service}
}

// count is what became of one node's connections to one target.
type count struct {
	ok, failed, skipped int
	slowest             time.Duration
	answered            map[string]int
}

// tally counts the connections of one node until they are told.
type tally struct {
	mu     sync.Mutex
	from   time.Time
	counts map[target]*count
}

func newTally(now time.Time) *tally { return &tally{from: now, counts: map[target]*count{}} }

func (t *tally) add(to target, do func(*count)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.counts[to]
	if c == nil {
		c = &count{answered: map[string]int{}}
		t.counts[to] = c
	}
	do(c)
}

// take gives what was counted as events and begins anew.
func (t *tally) take(node string, now time.Time) (out []collect.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, to := range slices.SortedFunc(maps.Keys(t.counts), func(a, b target) int {
		return cmp.Or(cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.service, b.service), a.address.Compare(b.address))
	}) {
		c := t.counts[to]
		p := &collect.Connections{Node: node, Address: to.address, From: t.from, OK: c.ok, Failed: c.failed, Skipped: c.skipped, Slowest: c.slowest}
		for _, uid := range slices.Sorted(maps.Keys(c.answered)) {
			p.Answered = append(p.Answered, collect.Answered{UID: uid, N: c.answered[uid]})
		}
		out = append(out, collect.Event{At: now, Source: collect.TrafficSource(node), Object: to.object(), Payload: p})
	}
	t.from = now
	clear(t.counts)
	return out
}
