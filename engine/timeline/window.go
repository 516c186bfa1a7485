package timeline

import (
	"cmp"
	"slices"
	"time"

	"github.com/kconverge/kconverge/collect"
)

// Amount is a length of time, or a sum of some: at most D, at least D-Width,
// and either off by up to Error, both ways. Growing: it is of something that is
// not over, so that it is more than that.
type Amount struct {
	D, Width, Error time.Duration
	Growing         bool
}

func (a *Amount) add(b Amount) {
	a.D, a.Width, a.Error = a.D+b.D, a.Width+b.Width, a.Error+b.Error
	a.Growing = a.Growing || b.Growing
}

// LeftOut counts what a sum has nothing of, and says why.
type LeftOut struct {
	Why string
	N   int
}

// leave counts one more.
func leave(list []LeftOut, why string) []LeftOut {
	for i := range list {
		if list[i].Why == why {
			list[i].N++
			return list
		}
	}
	return append(list, LeftOut{why, 1})
}

func sortLeftOut(list []LeftOut) {
	slices.SortFunc(list, func(a, b LeftOut) int { return cmp.Or(b.N-a.N, cmp.Compare(a.Why, b.Why)) })
}

// PathsOf are the paths with the ids, in the order of s.Paths.
func (s *Service) PathsOf(ids []string) []*Path {
	if len(ids) == 0 {
		return nil
	}
	of := make(map[string]bool, len(ids))
	for _, id := range ids {
		of[id] = true
	}
	out := make([]*Path, 0, len(ids))
	for _, p := range s.Paths {
		if of[p.ID] {
			out = append(out, p)
		}
	}
	return out
}

// PathsFrom are the paths whose origin lies in [from, to].
func (s *Service) PathsFrom(from, to time.Time) []*Path {
	i, _ := slices.BinarySearchFunc(s.Paths, from, func(p *Path, t time.Time) int { return p.Origin.At.Compare(t) })
	j := i
	for j < len(s.Paths) && !s.Paths[j].Origin.At.After(to) {
		j++
	}
	return s.Paths[i:j]
}

// rulePlanes are the planes of the nodes' rules, by node.
func (s *Service) rulePlanes() []*Plane { return s.Rules.All() }

// unseenNodes are those whose rules should be known and were not all the time from
// the first of the paths' origins to the last arrival, or to now where one is open;
// without paths, those that are not known now.
func (s *Service) unseenNodes(paths []*Path) []string {
	if len(paths) == 0 {
		out := slices.Concat(s.Coverage.Blind, s.Coverage.Gap)
		slices.Sort(out)
		return out
	}
	from, to, open := paths[0].Origin.At, time.Time{}, false
	for _, p := range paths {
		if p.Origin.At.Before(from) {
			from = p.Origin.At
		}
		for _, t := range []time.Time{p.Origin.At, p.End()} {
			if t.After(to) {
				to = t
			}
		}
		open = open || p.Status == StatusOpen
	}
	var out []string
	for _, p := range s.rulePlanes() {
		if !slices.Contains(s.Coverage.LeftOut, p.ID.Node) && !p.knownDuring(from, to, open) {
			out = append(out, p.ID.Node)
		}
	}
	return out
}

// knownDuring reports that the plane was known all the time in [from, to], or from
// then until now.
func (p *Plane) knownDuring(from, to time.Time, untilNow bool) bool {
	for i, c := range p.Changes {
		ended := i+1 < len(p.Changes) && !p.Changes[i+1].At.After(from)
		if !ended && c.Knowledge != Known && (untilNow || !c.At.After(to)) {
			return false
		}
	}
	return len(p.Changes) > 0 && !p.Changes[0].At.After(from)
}

// revisionLabels name the template that a pod was made from: that of a
// Deployment's ReplicaSet, and that of a StatefulSet or DaemonSet
// (k8s.io/api/apps/v1).
var revisionLabels = []string{"pod-template-hash", "controller-revision-hash"}

func revisionOf(p *collect.Pod) string {
	for _, l := range revisionLabels {
		if v := p.Labels[l]; v != "" {
			return v
		}
	}
	return p.Revision
}
