package report

import (
	"slices"
	"time"

	"github.com/kconverge/kconverge/engine/timeline"
)

// BuildBetween is Build with nothing but what touches [from, to]: paths and episodes that
// were under way, connections, gaps, revisions side by side, and advice from those paths. States,
// planes and findings are those of the snapshot, as always. A zero time sets no limit.
func BuildBetween(s *timeline.Snapshot, keep func(*timeline.Service) bool, from, to time.Time) *Report {
	r := Build(s, keep)
	if from.IsZero() && to.IsZero() {
		return r
	}
	if !from.IsZero() {
		r.Window.From = from.UTC()
	}
	if !to.IsZero() {
		r.Window.To = to.UTC()
	}
	touches := func(start time.Time, end *time.Time) bool {
		return (to.IsZero() || !start.After(to)) && (from.IsZero() || end == nil || !end.Before(from))
	}
	r.Gaps = slices.DeleteFunc(r.Gaps, func(g Gap) bool { return !touches(g.From, g.To) })
	for i := range r.Services {
		v := &r.Services[i]
		v.Paths = slices.DeleteFunc(v.Paths, func(p Path) bool {
			end := &p.End
			switch {
			case p.Status == string(timeline.StatusOpen):
				end = nil
			case end.IsZero():
				end = &p.Origin.At
			}
			return !touches(p.Origin.At, end)
		})
		v.Episodes = slices.DeleteFunc(v.Episodes, func(e Episode) bool { return !touches(e.Start, e.End) })
		v.Rollouts = slices.DeleteFunc(v.Rollouts, func(t Together) bool { return !touches(t.From, t.To) })
		if svc := s.Service(v.Namespace, v.Name); svc != nil {
			v.Connections = connections(svc, s.Nodes, func(from, to time.Time) bool { return touches(from, &to) })
			ids := make([]string, len(v.Paths))
			for k := range v.Paths {
				ids[k] = v.Paths[k].ID
			}
			v.Advice = advice(svc.Advice(svc.PathsOf(ids)))
		}
	}
	return r
}
