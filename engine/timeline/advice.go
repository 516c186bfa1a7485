package timeline

import (
	"cmp"
	"slices"
	"time"
)

// Advice is the preStop that would have kept removed endpoints able to answer
// until the last node had let go of them. A removal's need is the time from the
// start of the pod's termination, as the API told of it, to the last node that
// stopped routing to it (Risk.FromTermination): the kubelet begins the preStop
// no sooner. It does not depend on the preStop that the pod has.
//
// Counted are the removals by their own termination. An endpoint that was taken
// out before, because its pod turned unready, was relabelled or went without a
// termination, needed no preStop, or would not have been helped by one; LeftOut
// counts those, and those whose need is not known. One that some node still
// routes to counts with its need so far, which makes what rests on it "more than".
type Advice struct {
	// N is how many removals were counted.
	N int
	// Worst is the need that may have been the largest, with its error against
	// it, and WorstPath whose it is; meaningless with N = 0.
	Worst     Amount
	WorstPath string
	// P99 is nil under 100 removals: then the worst is all that can be said.
	P99     *Amount
	LeftOut []LeftOut
	// Unseen are nodes whose rules are not known: one of them may have been
	// later than all that are.
	Unseen []string
}

// Reasons to leave a removal out of Advice.
const (
	whyOtherCause = "taken out for another reason than its termination"
	whyNoStart    = "the start of its termination was not observed"
	whyNoNode     = "no node's rules were seen to follow"
	whyTakenBack  = "a node's part was taken back or handed over"
)

// quantileFrom is how many values a p99 takes.
const quantileFrom = 100

// Advice is that of the removals among the paths given, which are the Service's.
func (s *Service) Advice(paths []*Path) Advice {
	a := Advice{Unseen: s.unseenNodes(paths)}
	var needs []Amount
	for _, p := range paths {
		if p.Op != OpRemove {
			continue
		}
		if why := p.noNeed(); why != "" {
			a.LeftOut = leave(a.LeftOut, why)
			continue
		}
		n := Amount{D: *p.Risk.FromTermination, Width: p.Risk.Width, Error: p.Risk.Error, Growing: p.Risk.Growing}
		if len(needs) == 0 || n.atMost() > a.Worst.atMost() {
			a.Worst, a.WorstPath = n, p.ID
		}
		needs = append(needs, n)
	}
	sortLeftOut(a.LeftOut)
	a.N = len(needs)
	for _, n := range needs {
		a.Worst.Growing = a.Worst.Growing || n.Growing
	}
	if a.N >= quantileFrom {
		q := quantile(needs, 99)
		a.P99 = &q
	}
	return a
}

// noNeed says why a removal's need is not known or does not count, "" when it
// does.
func (p *Path) noNeed() string {
	if p.Cause != CausePodTerminating {
		return whyOtherCause
	}
	if p.Risk.FromTermination != nil {
		return ""
	}
	for i := range p.Rules {
		if st := p.Rules[i].Status; st == StatusSuperseded || st == StatusHandedOver {
			return whyTakenBack
		}
	}
	if len(p.Rules) == 0 {
		return whyNoNode
	}
	return whyNoStart
}

// atMost is the most that the amount can be.
func (a Amount) atMost() time.Duration { return a.D + a.Error }

// quantile gives the nearest-rank percentile, by the most that each can be. One that is not over has at least
// its value: where the rank may fall on such a one the answer is at least what it
// is with the values as they are.
func quantile(list []Amount, percent int) Amount {
	rank := (percent*len(list) + 99) / 100
	least := slices.Clone(list)
	slices.SortStableFunc(least, func(a, b Amount) int { return cmp.Compare(a.atMost(), b.atMost()) })
	q := least[rank-1]
	over := 0
	for _, x := range list {
		if !x.Growing && x.atMost() <= q.atMost() {
			over++
		}
	}
	// With rank values that are over and not larger, nothing that grows can
	// push it up.
	q.Growing = over < rank
	return q
}

// Needed is the preStop, rounded up to a tenth of a second, that covers the
// amount even where its error is against it.
func (a Amount) Needed() time.Duration {
	const tenth = 100 * time.Millisecond
	d := max(a.atMost(), 0)
	return (d + tenth - 1) / tenth * tenth
}
