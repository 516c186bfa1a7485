package live

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/engine/timeline"
)

// Scope chooses the Services that a condition is about.
type Scope struct {
	// Services are "namespace/name"; empty means every Service that exists.
	Services []string
	// Namespaces limits an empty Services; empty means all.
	Namespaces []string
}

// Of returns the Services of the scope that exist in s, and the names of those
// that were asked for and do not.
func (c Scope) Of(s *timeline.Snapshot) (found []*timeline.Service, absent []string) {
	if len(c.Services) == 0 {
		for _, svc := range s.Services {
			if svc.Deleted.IsZero() && (len(c.Namespaces) == 0 || slices.Contains(c.Namespaces, svc.Namespace)) {
				found = append(found, svc)
			}
		}
		return found, nil
	}
	for _, key := range c.Services {
		ns, name, _ := strings.Cut(key, "/")
		if svc := s.Service(ns, name); svc != nil && svc.Deleted.IsZero() {
			found = append(found, svc)
		} else {
			absent = append(absent, key)
		}
	}
	return found, absent
}

// Convergence says when a set of Services may be called converged.
type Convergence struct {
	Scope
	// MinEndpoints that each Service must have wanted at least.
	MinEndpoints int
	// After: every needed source must have vouched for at least this time,
	// for instance the end of a command.
	After time.Time
	// Settled asks that the workloads' controllers are done as well, as far as
	// the watches of the workloads have vouched. Right after a scale nothing
	// unready is wanted yet and every plane agrees, so agreement alone is not
	// "done".
	Settled bool
	// Ask is called when only a source's word is missing: it should make the
	// sources vouch. May be nil.
	Ask func()
}

// Condition returns a Condition with a memory: what it judges must hold at some
// moment, and still hold once every needed source has vouched past that moment.
func (c Convergence) Condition() Condition {
	var since time.Time
	return func(s *timeline.Snapshot) (bool, string) {
		if why := c.pending(s); why != "" {
			since = time.Time{}
			return false, why
		}
		if since.IsZero() {
			since = s.Now
		}
		if late := c.laggards(s, later(since, c.After)); len(late) > 0 {
			if c.Ask != nil {
				c.Ask()
			}
			return false, "word from " + strings.Join(late, ", ")
		}
		return true, ""
	}
}

// pending tells what does not hold yet, or "".
func (c Convergence) pending(s *timeline.Snapshot) string {
	found, absent := c.Of(s)
	if len(absent) > 0 {
		return "Service " + strings.Join(absent, ", ") + " to exist"
	}
	for _, svc := range found {
		name := svc.Namespace + "/" + svc.Name
		if svc.State == timeline.Unknown {
			return name + " to be listed"
		}
		if svc.State != timeline.Converged {
			if len(svc.Differences) > 0 {
				d := svc.Differences[0]
				return fmt.Sprintf("%s: %s of %s %s", name, d.Plane, d.Endpoint.IP, d.Kind)
			}
			return name + " to converge"
		}
		if n := len(svc.Wanted); c.MinEndpoints > 0 && (n == 0 || svc.Wanted[n-1].N < c.MinEndpoints) {
			return fmt.Sprintf("%s to have %d ready endpoints", name, c.MinEndpoints)
		}
		for _, w := range svc.Workloads {
			if c.Settled && !w.Settled {
				return fmt.Sprintf("%s %s: %s", w.Kind, w.Name, w.Why)
			}
		}
	}
	if c.Settled {
		for key, w := range s.Workloads {
			_, rest, _ := strings.Cut(key, "/")
			ns, _, _ := strings.Cut(rest, "/")
			if !w.Settled && (len(c.Namespaces) == 0 || slices.Contains(c.Namespaces, ns)) && len(c.Services) == 0 {
				return fmt.Sprintf("%s %s: %s", w.Kind, w.Name, w.Why)
			}
		}
	}
	return ""
}

// laggards names the sources that have not vouched for t although the condition
// rests on them: those that the watermark needs and, for what has settled, those
// of the workloads. One that is forbidden would be awaited for ever; Untold
// names it.
func (c Convergence) laggards(s *timeline.Snapshot, t time.Time) []string {
	var out []string
	for _, src := range s.Sources {
		if (src.Needed || c.Settled && ofWorkloads(src.ID) && src.State != collect.SourceForbidden) && src.Vouched.Before(t) {
			out = append(out, string(src.ID))
		}
	}
	return out
}

// Untold gives the source of workloads that may not be read, so that it cannot
// be told whether they have settled; false when there is none, or none is asked
// for.
func (c Convergence) Untold(s *timeline.Snapshot) (timeline.SourceStatus, bool) {
	for _, src := range s.Sources {
		if c.Settled && ofWorkloads(src.ID) && src.State == collect.SourceForbidden {
			return src, true
		}
	}
	return timeline.SourceStatus{}, false
}

func ofWorkloads(id collect.SourceID) bool {
	switch id {
	case collect.SourceDeployments, collect.SourceReplicaSets, collect.SourceStatefulSets, collect.SourceDaemonSets:
		return true
	}
	return false
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
