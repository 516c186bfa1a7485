package timeline

import "time"

// Unrouted is what additions cost: capacity that was there and got no
// connections, in pod-seconds (one pod unused for a second). An addition counts
// from its origin, for a pod that became ready that moment, to a node's arrival.
// A node that has not arrived counts with its time so far, and the sum is more
// than that; one that routed to the endpoint already counts nothing.
//
// Negative times, from the disorder of two sources, are summed as they are.
type Unrouted struct {
	// N is how many additions were counted.
	N int
	// ToLast sums, over the additions, the time until the last node routed to
	// the endpoint: no node's clients were without it any longer.
	ToLast Amount
	// Mean sums, over the additions, the mean over the nodes: what all nodes'
	// clients together lacked, when they are as many on each.
	Mean    Amount
	LeftOut []LeftOut
	// Unseen are nodes whose rules are not known, and so not counted.
	Unseen []string
}

// Reasons to leave an addition out of Unrouted.
const (
	whyNoFollower = "no node had to follow, or none is seen"
	whyUndone     = "taken back before every node had it"
	whyNotReady   = "not ready: routed to for want of another"
)

// Unrouted is that of the additions among the paths given, which are the
// Service's, as of now.
func (s *Service) Unrouted(paths []*Path, now time.Time) Unrouted {
	u := Unrouted{Unseen: s.unseenNodes(paths)}
	for _, p := range paths {
		if p.Op != OpAdd {
			continue
		}
		last, mean, why := p.unrouted(now)
		if why != "" {
			u.LeftOut = leave(u.LeftOut, why)
			continue
		}
		u.N++
		u.ToLast.add(last)
		u.Mean.add(mean)
	}
	sortLeftOut(u.LeftOut)
	return u
}

func (p *Path) unrouted(now time.Time) (last, mean Amount, why string) {
	switch {
	case p.Cause == CauseFallback:
		return last, mean, whyNotReady
	case len(p.Rules) == 0:
		return last, mean, whyNoFollower
	}
	var reached span
	for i := range p.Rules {
		h := &p.Rules[i]
		one := Amount{D: h.Lag, Width: h.Width(), Error: h.Error}
		switch h.Status {
		case StatusAlreadyRouted:
			one = Amount{}
		case StatusOpen:
			one = Amount{D: now.Sub(p.Origin.At), Growing: true}
		case StatusArrived:
		default:
			return Amount{}, Amount{}, whyUndone
		}
		mean.add(one)
		reached.reach(p.Origin.At.Add(one.D), one.Width, one.Error)
		last.Growing = last.Growing || one.Growing
	}
	n := time.Duration(len(p.Rules))
	mean.D, mean.Width, mean.Error = mean.D/n, mean.Width/n, mean.Error/n
	last.D, last.Width, last.Error = reached.at.Sub(p.Origin.At), reached.width(), reached.error()
	return last, mean, ""
}
