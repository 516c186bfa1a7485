package timeline

import (
	"time"

	"github.com/kconverge/kconverge/collect"
)

// inversions measures the disorder between sources: of two kube events the one
// with the lower resourceVersion came first, so when it was observed later, the
// difference is by how much the two watches disagree. Between a kube watch and
// a node's rules it is by how much rules were seen to move before the slice
// that made them move.
type inversions struct {
	recent map[collect.SourceID]*recentEvents
	pair   map[[2]collect.SourceID]time.Duration
	max    time.Duration
}

const keepRecent = 16

type recentEvents struct {
	rv [keepRecent]uint64
	at [keepRecent]time.Time
	n  int
}

// rulesSide stands for the rules of all nodes in a pair.
const rulesSide collect.SourceID = collect.SourceRulesPrefix

// observe takes a watch event of a kube source with its resourceVersion.
func (v *inversions) observe(source collect.SourceID, rv uint64, at time.Time) {
	for other, r := range v.recent {
		if other == source {
			continue
		}
		for i := range min(r.n, keepRecent) {
			switch {
			case r.rv[i] > rv && r.at[i].Before(at):
				v.record(source, other, at.Sub(r.at[i]))
			case r.rv[i] < rv && r.at[i].After(at):
				v.record(source, other, r.at[i].Sub(at))
			}
		}
	}
	r := v.recent[source]
	if r == nil {
		r = &recentEvents{}
		v.recent[source] = r
	}
	r.rv[r.n%keepRecent], r.at[r.n%keepRecent] = rv, at
	r.n++
}

func (v *inversions) record(a, b collect.SourceID, d time.Duration) {
	key := pairOf(a, b)
	v.pair[key] = max(v.pair[key], d)
	v.max = max(v.max, d)
}

func (v *inversions) between(a, b collect.SourceID) time.Duration { return v.pair[pairOf(a, b)] }

func pairOf(a, b collect.SourceID) [2]collect.SourceID {
	if b < a {
		a, b = b, a
	}
	return [2]collect.SourceID{a, b}
}
