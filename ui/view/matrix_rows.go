package view

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/kconverge/kconverge/engine/timeline"
)

// cellKey is one cell of the matrix.
type cellKey struct {
	node     string
	endpoint timeline.EndpointID
}

// rowRank orders the nodes of the matrix, the latest first.
type rowRank int

const (
	rankDiffers rowRank = iota // by the oldest open difference
	rankUnseen                 // nothing is known of its rules now
	rankLeftOut                // gone or not ready: it holds nothing back
	rankRest
)

// matrixRow is a node of the matrix.
type matrixRow struct {
	name  string
	node  *timeline.Node // nil for one that only rules are known of
	rank  rowRank
	since time.Time // of its oldest difference, zero without one
}

// matrixSums is what the matrix knows of all nodes at once: their order and the
// differences. It is made once for each snapshot; all else is made of the rows in
// view.
type matrixSums struct {
	rows   []matrixRow
	index  map[string]int // of a node's row
	diffs  map[cellKey]*timeline.Difference
	perEnd map[timeline.EndpointID]int // nodes that differ
	differ int                         // nodes with a difference
	planes map[string]*timeline.Plane  // of the rows that were in view
}

// newMatrixSums sorts the nodes for a Service.
func newMatrixSums(snap *timeline.Snapshot, svc *timeline.Service, byName bool) *matrixSums {
	m := &matrixSums{
		index: map[string]int{}, diffs: map[cellKey]*timeline.Difference{}, perEnd: map[timeline.EndpointID]int{}, planes: map[string]*timeline.Plane{},
	}
	for i := range snap.Nodes {
		n := &snap.Nodes[i]
		if _, twice := m.index[n.Name]; twice {
			continue
		}
		m.index[n.Name] = len(m.rows)
		r := matrixRow{name: n.Name, node: n, rank: rankRest}
		if !n.Exists || !n.Ready {
			r.rank = rankLeftOut
		}
		m.rows = append(m.rows, r)
	}
	row := func(name string) *matrixRow {
		i, ok := m.index[name]
		if !ok {
			i = len(m.rows)
			m.index[name] = i
			m.rows = append(m.rows, matrixRow{name: name, rank: rankRest})
		}
		return &m.rows[i]
	}
	for _, names := range [][]string{svc.Coverage.Blind, svc.Coverage.Gap} {
		for _, n := range names {
			row(n).rank = rankUnseen
		}
	}
	for _, n := range svc.Coverage.LeftOut {
		row(n).rank = rankLeftOut
	}
	for i := range svc.Differences {
		d := &svc.Differences[i]
		if d.Plane.Kind != timeline.PlaneRules {
			continue
		}
		r := row(d.Plane.Node)
		if r.since.IsZero() || d.Since.Before(r.since) {
			if r.since.IsZero() {
				m.differ++
			}
			r.since = d.Since
		}
		if r.rank != rankLeftOut {
			r.rank = rankDiffers
		}
		k := cellKey{d.Plane.Node, d.Endpoint.EndpointID}
		if m.diffs[k] == nil {
			m.diffs[k] = d
			m.perEnd[k.endpoint]++
		}
	}
	slices.SortStableFunc(m.rows, func(a, b matrixRow) int {
		if byName {
			return strings.Compare(a.name, b.name)
		}
		if a.rank != b.rank {
			return cmp.Compare(a.rank, b.rank)
		}
		if a.rank == rankDiffers {
			if c := a.since.Compare(b.since); c != 0 {
				return c
			}
		}
		return strings.Compare(a.name, b.name)
	})
	for i := range m.rows {
		m.index[m.rows[i].name] = i
	}
	return m
}

// plane is the plane of a row's rules, or nil.
func (m *matrixSums) plane(svc *timeline.Service, node string) *timeline.Plane {
	p, ok := m.planes[node]
	if !ok {
		p = svc.Rules.Of(node)
		m.planes[node] = p
	}
	return p
}

// matrixColumn is an endpoint of the matrix; the one without an address stands for
// the Service's frontends.
type matrixColumn struct {
	endpoint timeline.Endpoint
	title    string
}

// columns are the endpoints that the slices have or should have, that some node
// differs about, and that the rows in view route to or should: rules may rightly
// have what no slice calls ready (pods that terminate and still serve).
func (m *matrixSums) columns(svc *timeline.Service, shown []matrixRow) []matrixColumn {
	seen := map[timeline.EndpointID]bool{}
	var out []matrixColumn
	add := func(e timeline.Endpoint) {
		if !seen[e.EndpointID] {
			seen[e.EndpointID] = true
			out = append(out, matrixColumn{endpoint: e})
		}
	}
	members := func(p *timeline.Plane) {
		if p == nil {
			return
		}
		for i := range p.Members {
			e := &p.Members[i]
			if n := len(e.Changes); n > 0 && (e.Changes[n-1].Want || e.Changes[n-1].Have) {
				add(e.Endpoint)
			}
		}
	}
	members(svc.Slices)
	for i := range shown {
		members(m.plane(svc, shown[i].name))
	}
	for i := range svc.Differences {
		if d := &svc.Differences[i]; d.Plane.Kind == timeline.PlaneRules {
			add(d.Endpoint)
		}
	}
	slices.SortFunc(out, func(a, b matrixColumn) int {
		return cmp.Or(a.endpoint.IP.Compare(b.endpoint.IP), strings.Compare(a.endpoint.UID, b.endpoint.UID))
	})
	two := svc.Spec != nil && len(svc.Spec.Families) > 1
	for i := range out {
		out[i].title = columnTitle(&out[i].endpoint, two)
	}
	return out
}

// columnTitle is a short name of an endpoint: the generated part of its pod's
// name, or how its address ends. With two families IPv6 is marked.
func columnTitle(e *timeline.Endpoint, twoFamilies bool) string {
	if !e.IP.IsValid() {
		return "front"
	}
	ip := e.IP.Unmap()
	t := e.Pod
	if i := strings.LastIndexByte(t, '-'); i >= 0 && len(t)-i > 3 {
		t = t[i+1:]
	}
	if t == "" {
		t = ip.String()
		sep := "."
		if ip.Is6() {
			sep = ":"
		}
		if i := strings.LastIndex(t, sep); i > 0 {
			if k := strings.LastIndex(t[:i], sep); k >= 0 && !ip.Is6() {
				i = k
			}
			t = t[i:]
		}
	}
	if twoFamilies && ip.Is6() {
		t += "/6"
	}
	return t
}

// cellState is what a cell says.
type cellState int

const (
	cellNotWanted cellState = iota // neither routed nor to be
	cellAgrees
	cellMissing
	cellStale
	cellStopped // stale, and nothing answers behind it
	cellUnexpected
	cellChanged
	cellBlind
	cellGap
	cellNothing // there is nothing to say of this node
)

// matrixCell is a cell with since when it has been so; the zero time is not
// known. AtLeast: it was so when it was first seen.
type matrixCell struct {
	state   cellState
	since   time.Time
	atLeast bool
	stopped time.Time
}

// knowledge is what hides all cells of a plane, if anything does.
func knowledge(p *timeline.Plane) (matrixCell, bool) {
	if p == nil || len(p.Changes) == 0 {
		return matrixCell{state: cellNothing}, true
	}
	switch c := p.Changes[len(p.Changes)-1]; c.Knowledge {
	case timeline.Blind:
		return matrixCell{state: cellBlind}, true
	case timeline.InGap:
		return matrixCell{state: cellGap, since: c.At}, true
	}
	return matrixCell{}, false
}

// cell makes a cell of a plane that is known, from its member's history (nil for
// none). What the model lists as a difference counts first.
func (m *matrixSums) cell(p *timeline.Plane, e timeline.EndpointID, changes []timeline.MemberChange) matrixCell {
	if d := m.diffs[cellKey{p.ID.Node, e}]; d != nil {
		return matrixCell{state: stateOfKind(d), since: d.Since, stopped: d.Stopped}
	}
	if len(changes) == 0 {
		return matrixCell{}
	}
	i := len(changes) - 1
	c := changes[i]
	var out matrixCell
	switch {
	case c.Want && c.Have && c.Agrees:
		out.state = cellAgrees
	case !c.Want && !c.Have && c.Agrees:
	case c.Want && !c.Have:
		out.state = cellMissing
	case c.Have && !c.Want && c.Unexpected:
		out.state = cellUnexpected
	case c.Have && !c.Want && c.Stopped:
		out.state = cellStopped
	case c.Have && !c.Want:
		out.state = cellStale
	default:
		out.state = cellChanged
	}
	for i > 0 && changes[i-1].Want == c.Want && changes[i-1].Have == c.Have && changes[i-1].Agrees == c.Agrees {
		i--
	}
	out.since = changes[i].At
	out.atLeast = i == 0 && (!p.Changes[0].At.Before(out.since) || slices.ContainsFunc(p.Changes, func(x timeline.PlaneChange) bool { return x.Baseline && x.At.Equal(out.since) }))
	return out
}

func stateOfKind(d *timeline.Difference) cellState {
	switch d.Kind {
	case "missing":
		return cellMissing
	case "stale":
		if !d.Stopped.IsZero() {
			return cellStopped
		}
		return cellStale
	case "unexpected":
		return cellUnexpected
	}
	return cellChanged
}

// cells are those of one row, one for each column.
func (m *matrixSums) cells(svc *timeline.Service, node string, cols []matrixColumn, at map[timeline.EndpointID]int) []matrixCell {
	out := make([]matrixCell, len(cols))
	p := m.plane(svc, node)
	if hidden, ok := knowledge(p); ok {
		for i := range out {
			out[i] = hidden
		}
		return out
	}
	known := make([][]timeline.MemberChange, len(cols))
	for i := range p.Members {
		if k, ok := at[p.Members[i].Endpoint.EndpointID]; ok {
			known[k] = p.Members[i].Changes
		}
	}
	if k, ok := at[timeline.EndpointID{}]; ok {
		known[k] = p.Frontends
	}
	for k := range cols {
		out[k] = m.cell(p, cols[k].endpoint.EndpointID, known[k])
	}
	return out
}
