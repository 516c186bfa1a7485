package timeline

import (
	"slices"
	"strings"
	"time"
)

// Together is an interval in which some node routed to endpoints of two or more
// revisions of one workload: old and new answer side by side, as in the middle
// of a rollout. With a workload that only ever ran one there is none, and neither
// where the old one goes before the new one comes.
type Together struct {
	// Workload is the Deployment, StatefulSet or DaemonSet: "web".
	Workload string
	// Revisions took part, in the order in which their first pods appeared.
	Revisions []string
	// From is when the first node routed to both, To when the last one did:
	// zero while one does.
	From, To time.Time
	// Error is how far either may be off, either way.
	Error time.Duration
}

// Length is how long it lasted, or has lasted by now.
func (t *Together) Length(now time.Time) time.Duration {
	if t.To.IsZero() {
		return now.Sub(t.From)
	}
	return t.To.Sub(t.From)
}

// Together lists the intervals that meet [from, to], in their full length, by
// start. Nodes count while their rules are known; an address that nobody is
// known to be behind has no revision.
func (s *Service) Together(from, to time.Time) []Together {
	type pod struct{ workload, revision string }
	pods := map[string]pod{}
	var order []pod // revisions by first appearance; Pods are by first change
	byWorkload := map[string]map[string]bool{}
	for i := range s.Pods {
		t := &s.Pods[i]
		if t.Revision == "" || t.Owner == "" {
			continue
		}
		x := pod{workloadName(t), t.Revision}
		pods[t.UID] = x
		if !slices.Contains(order, x) {
			order = append(order, x)
		}
		if byWorkload[x.workload] == nil {
			byWorkload[x.workload] = map[string]bool{}
		}
		byWorkload[x.workload][x.revision] = true
	}
	var out []Together
	for workload, revisions := range byWorkload {
		if len(revisions) < 2 {
			continue
		}
		var list []Together
		for _, p := range s.rulePlanes() {
			list = append(list, p.together(workload, func(uid string) string {
				if x := pods[uid]; x.workload == workload {
					return x.revision
				}
				return ""
			})...)
		}
		for _, t := range union(list) {
			if t.From.After(to) || !t.To.IsZero() && t.To.Before(from) {
				continue
			}
			took := t.Revisions
			t.Revisions = nil
			for _, x := range order {
				if x.workload == workload && slices.Contains(took, x.revision) {
					t.Revisions = append(t.Revisions, x.revision)
				}
			}
			out = append(out, t)
		}
	}
	slices.SortFunc(out, func(a, b Together) int {
		if c := a.From.Compare(b.From); c != 0 {
			return c
		}
		return strings.Compare(a.Workload, b.Workload)
	})
	return out
}

// workloadName is what made the pod, past a Deployment's ReplicaSet, whose name
// ends in the revision.
func workloadName(t *PodTrack) string {
	kind, name, _ := strings.Cut(t.Owner, "/")
	if kind == "ReplicaSet" {
		name = strings.TrimSuffix(name, "-"+t.Revision)
	}
	return name
}

// together are the intervals of one node.
func (p *Plane) together(workload string, revision func(uid string) string) []Together {
	type change struct {
		at  time.Time
		rev string
		by  int
	}
	var changes []change
	for i := range p.Members {
		m := &p.Members[i]
		rev := revision(m.Endpoint.UID)
		if rev == "" {
			continue
		}
		had := false
		for _, c := range m.Changes {
			if c.Have != had {
				had = c.Have
				by := 1
				if !had {
					by = -1
				}
				changes = append(changes, change{c.At, rev, by})
			}
		}
	}
	slices.SortStableFunc(changes, func(a, b change) int { return a.at.Compare(b.at) })
	err := receiptError
	for i := range p.Arrivals {
		err = max(err, p.Arrivals[i].Error)
	}
	var out []Together
	routed := map[string]int{}
	open := false
	for i, c := range changes {
		if routed[c.rev] += c.by; routed[c.rev] == 0 {
			delete(routed, c.rev)
		}
		if i+1 < len(changes) && changes[i+1].at.Equal(c.at) {
			continue // one generation
		}
		switch both := len(routed) > 1; {
		case both && !open:
			out = append(out, Together{Workload: workload, From: c.at, Error: err})
		case !both && open:
			out[len(out)-1].To = c.at
		}
		if open = len(routed) > 1; open {
			t := &out[len(out)-1]
			for rev := range routed {
				if !slices.Contains(t.Revisions, rev) {
					t.Revisions = append(t.Revisions, rev)
				}
			}
		}
	}
	return out
}

// union merges intervals that meet.
func union(list []Together) []Together {
	slices.SortFunc(list, func(a, b Together) int { return a.From.Compare(b.From) })
	var out []Together
	for _, t := range list {
		n := len(out)
		if n == 0 || !out[n-1].To.IsZero() && t.From.After(out[n-1].To) {
			out = append(out, t)
			continue
		}
		last := &out[n-1]
		if t.To.IsZero() || !last.To.IsZero() && t.To.After(last.To) {
			last.To = t.To
		}
		last.Error = max(last.Error, t.Error)
		for _, r := range t.Revisions {
			if !slices.Contains(last.Revisions, r) {
				last.Revisions = append(slices.Clone(last.Revisions), r)
			}
		}
	}
	return out
}
