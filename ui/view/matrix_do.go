package view

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/kconverge/kconverge/engine/timeline"
)

// do carries out an action in the matrix.
func (m *matrix) do(a Action, c *Context) Request {
	svc := c.Service()
	if svc == nil || len(m.columns) == 0 && m.h == 0 {
		return Request{}
	}
	sums := m.summed(c, svc)
	if i, ok := sums.index[m.node]; ok {
		m.l.at = i
	}
	if m.l.do(a, len(sums.rows), m.h) {
		m.node = sums.rows[m.l.at].name
		return handled
	}
	if by, ok := map[Action]int{Left: -1, Right: 1, FarLeft: -10, FarRight: 10}[a]; ok {
		m.cols.at += by
		m.cols.fit(len(m.columns), m.fit)
		m.pick()
		return handled
	}
	switch a {
	case SortRows:
		m.byName = !m.byName
		return Request{Handled: true, Say: map[bool]string{true: "nodes by name", false: "the latest nodes first"}[m.byName]}
	case NextDiffer, PrevDiffer:
		return m.jump(a == NextDiffer, sums)
	case Open:
		return m.open(c, svc)
	case Copy:
		return m.copy(c, svc, sums)
	}
	return Request{}
}

// jump chooses the next cell that differs, row by row, or the one before; after the
// last comes the first.
func (m *matrix) jump(on bool, sums *matrixSums) Request {
	type place struct{ row, col int }
	byReading := func(a, b place) int { return cmp.Or(cmp.Compare(a.row, b.row), cmp.Compare(a.col, b.col)) }
	at := make(map[timeline.EndpointID]int, len(m.columns))
	for i := range m.columns {
		at[m.columns[i].endpoint.EndpointID] = i
	}
	var all []place
	for k := range sums.diffs {
		row, ok := sums.index[k.node]
		if col, has := at[k.endpoint]; ok && has {
			all = append(all, place{row, col})
		}
	}
	if len(all) == 0 {
		return Request{Handled: true, Say: "no cell differs"}
	}
	slices.SortFunc(all, byReading)
	here := place{m.l.at, m.cols.at}
	i, found := slices.BinarySearchFunc(all, here, byReading)
	switch {
	case on && found:
		i++
	case !on:
		i--
	}
	i = (i + len(all)) % len(all)
	m.l.at, m.cols.at = all[i].row, all[i].col
	m.node = sums.rows[m.l.at].name
	m.pick()
	return Request{Handled: true, Say: fmt.Sprintf("cell %d of %d that differ", i+1, len(all))}
}

// open shows the path that the chosen cell is about.
func (m *matrix) open(c *Context, svc *timeline.Service) Request {
	if m.cols.at >= len(m.columns) {
		return handled
	}
	p := pathOfCell(svc, m.node, m.columns[m.cols.at].endpoint.EndpointID)
	if p == nil {
		return Request{Handled: true, Say: "no change of it is known"}
	}
	c.Focus.Path = p.ID
	return Request{Handled: true, Show: Path}
}

// pathOfCell is the latest change of an endpoint that the node's rules had a part
// in, one that is still open first; or else the latest one of the endpoint.
func pathOfCell(svc *timeline.Service, node string, e timeline.EndpointID) *timeline.Path {
	var best *timeline.Path
	rank := 0
	for i := len(svc.Paths) - 1; i >= 0 && rank < 3; i-- {
		p := svc.Paths[i]
		if p.Endpoint.EndpointID != e {
			continue
		}
		here := 1
		for k := range p.Rules {
			if p.Rules[k].Plane.Node == node {
				here = 2
				if p.Rules[k].Status == timeline.StatusOpen {
					here = 3
				}
			}
		}
		if here > rank {
			best, rank = p, here
		}
	}
	return best
}

// copy copies the chosen node's row as text, a line for each endpoint.
func (m *matrix) copy(c *Context, svc *timeline.Service, sums *matrixSums) Request {
	at := make(map[timeline.EndpointID]int, len(m.columns))
	for i := range m.columns {
		at[m.columns[i].endpoint.EndpointID] = i
	}
	text := key(svc) + " on " + m.node + " " + moment(c.Now, c) + "\n"
	for i, cell := range sums.cells(svc, m.node, m.columns, at) {
		e := &m.columns[i].endpoint
		what, _ := cellText(cell, c, svc, m.node)
		text += e.Pod + "\t" + e.IP.String() + "\t" + what + "\n"
	}
	return Request{Handled: true, Copy: text, Say: "copied what " + m.node + " routes to"}
}

// click chooses the node and the endpoint under the mouse; a second click there
// opens.
func (m *matrix) click(x, y int, c *Context) Request {
	svc := c.Service()
	if svc == nil || m.h == 0 {
		return Request{}
	}
	col := -1
	if x >= m.cellX && m.cellW > 0 {
		col = m.cols.first + (x-m.cellX)/m.cellW
	}
	if col >= len(m.columns) || col >= m.cols.first+m.fit {
		col = -1
	}
	sums := m.summed(c, svc)
	row := m.l.first + y - m.top
	inRows := y >= m.top && y < m.top+m.h && row < len(sums.rows)
	inHead := y < m.top && y >= m.top-m.head
	if !inRows && (!inHead || col < 0) {
		return Request{}
	}
	again := inRows && col >= 0 && col == m.cols.at && sums.rows[row].name == m.node
	if inRows {
		m.l.at, m.node = row, sums.rows[row].name
	}
	if col >= 0 {
		m.cols.at = col
		m.pick()
	}
	if again {
		return m.open(c, svc)
	}
	return handled
}
