package timeline

import (
	"maps"
	"time"

	"github.com/kconverge/kconverge/collect"
)

// claimPrecision is what the API's times are written to.
const claimPrecision = time.Second

// PastKind is what a stretch of a plane's past says.
type PastKind string

const (
	PastHad     PastKind = "had"     // Have endpoints could be routed to
	PastExisted PastKind = "existed" // its objects existed; how many endpoints is not known
	PastGap     PastKind = "gap"     // a part of what would tell of it is missing
)

// PastChange is one stretch of a plane's past, from At until the next one.
type PastChange struct {
	At   time.Time
	Kind PastKind
	Have int
	// Error is how far At may be off, either way: a second for what objects say
	// of themselves, the error of the node's clock for rules. NotBefore, when
	// set, says that At is only known to lie in [NotBefore, At]. OneSided: the
	// node's clock is bounded from one side only, it may have been any time
	// before.
	Error     time.Duration
	NotBefore time.Time
	OneSided  bool
	// Note is what tells it: the slice that was written last, "generation 77".
	Note string
}

// Past is what a plane is said to have had before it was observed, until its
// first baseline at Until. All of it is claimed: by the objects' own words, by an
// agent's log, or by rules that were read before there was anything to compare
// them with. Nothing is wanted in it, so that nothing differs, and no step,
// lag, path or episode is ever computed from it.
type Past struct {
	Changes []PastChange // by time, never empty
	Until   time.Time
}

// At returns what is said of t; ok is false before the past and from Until on.
func (p *Past) At(t time.Time) (c PastChange, ok bool) {
	if p == nil || !t.Before(p.Until) {
		return c, false
	}
	for _, x := range p.Changes {
		if x.At.After(t) {
			break
		}
		c, ok = x, true
	}
	return c, ok
}

// begin notes the plane's baseline. As long as nothing but first lists and dumps
// has told of the plane, the latest of them counts.
func (p *plane) begin(now PlaneChange) {
	switch {
	case !now.Baseline:
		p.moved = true
	case p.moved:
	default:
		at := now.At
		if !p.base.At.IsZero() {
			at = p.base.At
		}
		p.base = now
		p.base.At = at
		p.claims = p.claimed()
	}
}

// claimed is the past of a plane by the words of the objects that hold it: it
// has had what they hold since the latest of them was written, and they existed
// since the first was created. Objects that are gone by now leave no word.
func (p *plane) claimed() []PastChange {
	var created, written time.Time
	name, silent := "", false
	take := func(object string, c, w time.Time) {
		if !c.IsZero() && (created.IsZero() || c.Before(created)) {
			created = c
		}
		silent = silent || w.IsZero()
		if !w.Before(written) {
			written, name = w, object
		}
	}
	switch p.id.Kind {
	case PlaneSlices:
		for _, sl := range p.svc.sortedSlices() {
			take(sl.name, sl.slice.Created, sl.slice.Written)
		}
	case PlaneEndpoints:
		if l := p.svc.legacy; l != nil {
			take("", l.obj.Created, l.obj.Written)
		}
	}
	var out []PastChange
	if !created.IsZero() && (silent || created.Before(written)) {
		out = append(out, PastChange{At: created.UTC(), Kind: PastExisted, Error: claimPrecision})
	}
	if !written.IsZero() && !silent {
		out = append(out, PastChange{At: written.UTC(), Kind: PastHad, Have: p.base.Have, Error: claimPrecision, Note: name})
	}
	return out
}

// pastOf gives a plane's past in its immutable form, nil without one: what is
// claimed or told of it, and the early states of rules that were read before there
// was anything to compare them with.
func pastOf(base PlaneChange, changes, early []PastChange) *Past {
	if base.At.IsZero() {
		return nil
	}
	out := &Past{Until: base.At}
	until := out.Until
	if len(early) > 0 {
		until = early[0].At
	}
	for _, c := range changes {
		if c.At.Before(until) {
			out.Changes = append(out.Changes, c)
		}
	}
	for _, c := range early {
		n := len(out.Changes)
		if n > 0 && out.Changes[n-1].Kind == PastHad && out.Changes[n-1].Have == c.Have || !c.At.Before(out.Until) {
			continue
		}
		out.Changes = append(out.Changes, c)
	}
	if len(out.Changes) == 0 {
		return nil
	}
	return out
}

// toldPast is what the log of a node's agent told from before the viewer came.
type toldPast struct {
	from, told time.Time
	fromError  time.Duration
	oneSided   bool
	by         map[serviceKey][]PastChange
	gaps       []collect.Gap
}

type serviceKey struct{ namespace, name string }

// onRulesPast takes the past of a node's rules, in the place of what was told
// before. It touches nothing but what is drawn of the past: no source, node,
// coverage or watermark.
func (m *Model) onRulesPast(r *collect.RulesPast, at time.Time) {
	utc := func(t time.Time) time.Time {
		if t.IsZero() {
			return t
		}
		return t.Round(0).UTC()
	}
	t := &toldPast{from: utc(r.From), told: at, fromError: r.FromError, oneSided: r.OneSided, by: map[serviceKey][]PastChange{}}
	for _, c := range r.Changes {
		k := serviceKey{c.Namespace, c.Service}
		x := PastChange{At: utc(c.At), Kind: PastHad, Have: c.Endpoints, Error: c.Error, NotBefore: utc(c.NotBefore), OneSided: r.OneSided}
		if c.Generation != 0 {
			x.Note = generationNote(c.Generation)
		}
		t.by[k] = append(t.by[k], x)
	}
	for _, g := range r.Gaps {
		t.gaps = append(t.gaps, collect.Gap{From: utc(g.From), To: utc(g.To), Why: g.Why})
	}
	m.pasts, m.ctx = maps.Clone(m.pasts), nil // views may have it
	m.pasts[r.Node] = t
	for _, s := range m.services {
		s.dirty = s.dirty || s.hasRules(r.Node)
	}
}

// of is the told past of one Service's plane, with the gaps of the log in it. A
// Service of which no change is told has been what it was in the baseline.
func (t *toldPast) of(service serviceKey, base PlaneChange) []PastChange {
	if t == nil {
		return nil
	}
	out := t.by[service]
	if len(out) == 0 {
		out = []PastChange{{At: t.from, Kind: PastHad, Have: base.Have, Error: t.fromError, OneSided: t.oneSided}}
	}
	for _, g := range t.gaps {
		out = cutGap(out, g.From, g.To)
	}
	return out
}

// cutGap puts a gap over [from, to) of a past; a zero to means that it goes on.
// What was had before it is not said to go on in it, and what comes after it is
// known from its end.
func cutGap(in []PastChange, from, to time.Time) []PastChange {
	if len(in) == 0 || !to.IsZero() && (!to.After(from) || !to.After(in[0].At)) {
		return in
	}
	if from.Before(in[0].At) {
		from = in[0].At
	}
	var out []PastChange
	for _, c := range in {
		if c.At.Before(from) {
			out = append(out, c)
		}
	}
	out = append(out, PastChange{At: from, Kind: PastGap})
	if to.IsZero() {
		return out
	}
	after := in[0]
	for _, c := range in {
		if !c.At.After(to) {
			after = c
		}
	}
	if after.At.Before(to) {
		after.At, after.Note = to, ""
	}
	out = append(out, after)
	for _, c := range in {
		if c.At.After(to) {
			out = append(out, c)
		}
	}
	return out
}

// retainPast drops the past of a plane, or what was told of one, that ended
// before the cut.
func (p *plane) retainPast(cut time.Time) {
	if !p.base.At.IsZero() && p.base.At.Before(cut) {
		p.base, p.claims, p.early, p.moved = PlaneChange{}, nil, nil, true
	}
}

func (m *Model) retainPasts(cut time.Time) {
	keep := map[string]*toldPast{}
	for node, t := range m.pasts {
		if !t.told.Before(cut) {
			keep[node] = t
		}
	}
	m.pasts, m.ctx = keep, nil
}
