package reference

import (
	"slices"
	"strings"
	"time"

	"github.com/kconverge/kconverge/collect"
)

// Coverage says what statements about nodes' rules rest on.
type Coverage struct {
	Expected, Seen, Blind, Gap, LeftOut []string
}

// Coverage is that of now: every node that exists and is ready should have rules
// if the session says that all nodes' are read; else those should whose are.
func (h *History) Coverage() (c Coverage) {
	f := h.now().facts
	names := map[string]bool{}
	for name := range f.nodes {
		names[name] = true
	}
	for name := range f.rules {
		names[name] = true
	}
	for id := range f.sources {
		if name, ok := strings.CutPrefix(string(id), collect.SourceRulesPrefix); ok {
			names[name] = true
		}
	}
	for name := range names {
		src := f.sources[collect.RulesSource(name)]
		_, dumped := f.rules[name]
		read := src != nil || dumped
		switch {
		case f.leftOut(name):
			if read || f.nodes[name].exists {
				c.LeftOut = append(c.LeftOut, name)
			}
			continue
		case !read && !f.session.NodesExpected:
			continue
		}
		c.Expected = append(c.Expected, name)
		switch {
		case src != nil && src.gap:
			c.Gap = append(c.Gap, name)
		case dumped:
			c.Seen = append(c.Seen, name)
		default:
			c.Blind = append(c.Blind, name)
		}
	}
	for _, l := range [][]string{c.Expected, c.Seen, c.Blind, c.Gap, c.LeftOut} {
		slices.Sort(l)
	}
	return c
}

// InGap reports that a source which a plane rests on is not watching now, so that
// what the plane has, or what is wanted of it, is not known.
func (h *History) InGap(plane string) bool {
	gap := func(ids ...collect.SourceID) bool {
		return slices.ContainsFunc(ids, func(id collect.SourceID) bool {
			s := h.now().facts.sources[id]
			return s != nil && s.gap
		})
	}
	switch name, _ := strings.CutPrefix(plane, onNode); plane {
	case Slices:
		return gap(collect.SourceServices, collect.SourcePods, collect.SourceEndpointSlices)
	case Endpoints:
		return gap(collect.SourceServices, collect.SourcePods, collect.SourceEndpoints)
	default:
		return gap(collect.SourceServices, collect.SourceEndpointSlices, collect.RulesSource(name))
	}
}

// Watermark is the latest time that all needed sources have vouched for: those
// that the session names, or pods, Services and slices, and the rules of the
// expected nodes that something reads.
func (h *History) Watermark() time.Time {
	f := h.now().facts
	needs := slices.Clone(f.session.Needs)
	if len(needs) == 0 {
		needs = []collect.SourceID{collect.SourcePods, collect.SourceServices, collect.SourceEndpointSlices}
	}
	for _, name := range h.Coverage().Expected {
		if f.sources[collect.RulesSource(name)] != nil {
			needs = append(needs, collect.RulesSource(name))
		}
	}
	least := time.Time{}
	for i, id := range needs {
		if name, ok := strings.CutPrefix(string(id), collect.SourceRulesPrefix); ok && f.leftOut(name) {
			continue
		}
		s := f.sources[id]
		if s == nil || s.vouched.IsZero() {
			return time.Time{}
		}
		if i == 0 || least.IsZero() || s.vouched.Before(least) {
			least = s.vouched
		}
	}
	return least
}

// Routed reports that some Service is, or was when it was deleted, one of those
// that kube-proxy takes care of.
func (h *History) Routed() bool {
	for _, s := range h.now().facts.services {
		if s.exists = true; s.routed() {
			return true
		}
	}
	return false
}
