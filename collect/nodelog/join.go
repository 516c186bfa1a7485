package nodelog

import (
	"slices"

	"github.com/kconverge/kconverge/collect"
)

// joiner puts together what an agent told in several lines. Its parts follow one
// another without another line between.
type joiner struct {
	rules *collect.Rules
	frame *collect.Keyframe
}

// drop gives up what is incomplete. It reports whether there was anything.
func (j *joiner) drop() bool {
	had := j.rules != nil || j.frame != nil
	j.rules, j.frame = nil, nil
	return had
}

// add takes the next line. It returns the event to act upon; ok is false when
// that is yet to come, or can never come because its beginning is missing
// (headless).
func (j *joiner) add(e collect.Event) (whole collect.Event, ok, headless bool) {
	switch p := e.Payload.(type) {
	case *collect.Rules:
		if p.Parts <= 1 {
			j.drop()
			return e, true, false
		}
		if p.Part == 1 {
			j.drop()
			first := *p
			first.Part, first.Ports, first.Unknown = 0, nil, nil
			j.rules = &first
		}
		r := j.rules
		if r == nil || !follows(r.Generation, r.Part, r.Parts, p.Generation, p.Part, p.Parts) {
			j.drop()
			return e, false, true
		}
		r.Part = p.Part
		r.Ports = joinPorts(r.Ports, p.Ports, func(p *collect.RulePort) *collect.RulePort { return p })
		r.Unknown = append(r.Unknown, p.Unknown...)
		if r.Part < r.Parts {
			return e, false, false
		}
		r.Part, r.Parts = 0, 0
		e.Payload, j.rules = r, nil
	case *collect.Keyframe:
		if p.Parts <= 1 {
			j.drop()
			return e, true, false
		}
		if p.Part == 1 {
			j.drop()
			first := *p
			first.Part, first.Ports, first.Unknown = 0, nil, nil
			j.frame = &first
		}
		k := j.frame
		if k == nil || !follows(k.Generation, k.Part, k.Parts, p.Generation, p.Part, p.Parts) {
			j.drop()
			return e, false, true
		}
		k.Part = p.Part
		k.Ports = joinPorts(k.Ports, p.Ports, func(p *collect.KeyPort) *collect.RulePort { return &p.RulePort })
		k.Unknown = append(k.Unknown, p.Unknown...)
		if k.Part < k.Parts {
			return e, false, false
		}
		k.Part, k.Parts = 0, 0
		e.Payload, j.frame = k, nil
	}
	return e, true, false
}

// follows reports that a part is the next one of the same whole.
func follows(generation uint32, part, parts int, nextGeneration uint32, next, nextParts int) bool {
	return nextGeneration == generation && next == part+1 && nextParts == parts
}

// joinPorts adds the next part's ports. Only the last port so far may go on in
// it.
func joinPorts[P any](ports, next []P, rule func(*P) *collect.RulePort) []P {
	for i := range next {
		if last := len(ports) - 1; last >= 0 && rule(&ports[last]).RulePortKey == rule(&next[i]).RulePortKey {
			joined := rule(&ports[last])
			*joined = joinPort(*joined, *rule(&next[i]))
		} else {
			ports = append(ports, next[i])
		}
	}
	return ports
}

// joinPort adds the next part of a port's lists. What is no list is the same in
// all parts.
func joinPort(a, b collect.RulePort) collect.RulePort {
	a.Frontends = append(slices.Clip(a.Frontends), b.Frontends...)
	a.Endpoints = append(slices.Clip(a.Endpoints), b.Endpoints...)
	a.Sources = append(slices.Clip(a.Sources), b.Sources...)
	return a
}
