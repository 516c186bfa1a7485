package view

import (
	"fmt"
	"strings"
	"time"

	"github.com/kconverge/kconverge/engine/lanes"
	"github.com/kconverge/kconverge/engine/timeline"
	"github.com/kconverge/kconverge/ui/draw"
	"github.com/kconverge/kconverge/ui/theme"
)

// matrix is the part of the Nodes view that shows the Service in focus: a row for
// each node, a column for each endpoint.
type matrix struct {
	byName bool
	l      list
	node   string // the chosen one, so that it stays chosen while the order moves
	cols   list
	chosen timeline.EndpointID
	picked bool // chosen says something

	sums    *matrixSums
	sumsOf  *timeline.Snapshot
	sumsFor string

	// Of the last frame, for keys and the mouse.
	columns                  []matrixColumn
	top, h, head             int
	cellX, cellW, fit, right int
}

// Widths of a column: at most, with its title beside the others, and with an
// upright one.
const (
	wideColumn   = 12
	narrowColumn = 2
	uprightTitle = 5
)

const pad = "            "

// cellSign is a cell's sign; what it means never rests on colour alone.
func cellSign(st cellState, g *draw.Glyphs) (string, theme.Role) {
	switch st {
	case cellAgrees:
		return "=", theme.Good
	case cellMissing:
		return lanes.Minus, theme.Warn
	case cellStale:
		return "+", theme.Warn
	case cellStopped:
		return g.Alert, theme.Bad
	case cellUnexpected:
		return "*", theme.Bad
	case cellChanged:
		return "~", theme.Warn
	case cellBlind:
		return g.Blind, theme.Warn
	case cellGap:
		return g.Gap, theme.Warn
	case cellNothing:
		return " ", theme.Dim
	}
	return "·", theme.Dim
}

var legendCells = []struct {
	state cellState
	text  string
}{
	{cellAgrees, "agrees"}, {cellMissing, "missing"}, {cellStale, "stale"}, {cellStopped, "stale, stopped"}, {cellUnexpected, "unexpected"},
	{cellChanged, "changed"}, {cellBlind, "blind"}, {cellGap, "gap"}, {cellNotWanted, "not here"},
}

// summed is the order of the nodes, made anew for another snapshot only.
func (m *matrix) summed(c *Context, svc *timeline.Service) *matrixSums {
	what := fmt.Sprint(key(svc), " ", m.byName)
	if m.sums == nil || m.sumsOf != c.Snap || m.sumsFor != what {
		m.sums, m.sumsOf, m.sumsFor = newMatrixSums(c.Snap, svc, m.byName), c.Snap, what
	}
	return m.sums
}

// draw paints the matrix.
func (m *matrix) draw(s *draw.Screen, r draw.Rect, c *Context) {
	m.columns, m.h = nil, 0
	svc := c.Service()
	if svc == nil {
		drawWaiting(s, r, c)
		return
	}
	if !svc.RoutedByProxy && svc.Rules.Len() == 0 {
		s.Rule(r.Min.X, r.Min.Y, r.Dx(), key(svc), "")
		s.TextIn(r.Min.X+3, r.Min.Y+2, r.Dx()-4, theme.Dim, "no node has rules for it: "+svc.WhyNot)
		return
	}
	sums := m.summed(c, svc)
	legend := legendLines(s, r.Dx())
	// The rows in view decide the columns, so what is above them is not counted
	// yet.
	room := max(1, r.Dy()-2-legend-2)
	if i, ok := sums.index[m.node]; ok {
		m.l.at = i
	}
	m.l.fit(len(sums.rows), room)
	m.columns = sums.columns(svc, sums.rows[m.l.first:min(len(sums.rows), m.l.first+room)])
	m.layout(s, r, room)
	m.l.fit(len(sums.rows), m.h)
	m.node = sums.rows[m.l.at].name
	m.follow()
	m.drawTitle(s, r, c, svc, sums)
	m.drawHead(s, r)

	at := make(map[timeline.EndpointID]int, len(m.columns))
	for i := range m.columns {
		at[m.columns[i].endpoint.EndpointID] = i
	}
	var chosen matrixCell
	for i := 0; i < m.h && m.l.first+i < len(sums.rows); i++ {
		row := &sums.rows[m.l.first+i]
		cells := sums.cells(svc, row.name, m.columns, at)
		m.drawRow(s, r, m.top+i, c, row, cells, sums.plane(svc, row.name))
		if m.l.first+i == m.l.at && m.cols.at < len(cells) {
			chosen = cells[m.cols.at]
		}
	}
	y := r.Max.Y - legend - 2
	drawMatrixLegend(s, r, y)
	if len(m.columns) == 0 {
		s.TextIn(r.Min.X+1, y+legend, r.Dx()-2, theme.Dim, "no node routes to an endpoint, and none should")
		return
	}
	m.drawDetail(s, r, y+legend, c, svc, &sums.rows[m.l.at], chosen)
}

// layout divides the screen: columns beside each other when all have room, or
// else upright ones.
func (m *matrix) layout(s *draw.Screen, r draw.Rect, room int) {
	nameW := max(12, min(26, r.Dx()/5))
	m.cellX, m.right = r.Min.X+3+nameW+12, r.Max.X
	m.cellW, m.head = 0, 1
	for i := range m.columns {
		m.cellW = max(m.cellW, draw.Width(s.Clean(m.columns[i].title))+2)
	}
	m.cellW = min(m.cellW, wideColumn)
	if len(m.columns)*m.cellW > m.right-m.cellX && r.Dy() >= 16 {
		m.cellW, m.head = narrowColumn, uprightTitle
	}
	m.fit = max(1, (m.right-m.cellX)/max(1, m.cellW))
	m.top, m.h = r.Min.Y+1+m.head, max(1, room+1-m.head)
}

// follow keeps the chosen endpoint chosen while columns come and go.
func (m *matrix) follow() {
	if m.picked {
		for i := range m.columns {
			if m.columns[i].endpoint.EndpointID == m.chosen {
				m.cols.at = i
			}
		}
	}
	m.cols.fit(len(m.columns), m.fit)
	m.pick()
}

// pick remembers which endpoint is chosen.
func (m *matrix) pick() {
	if m.cols.at < len(m.columns) {
		m.chosen, m.picked = m.columns[m.cols.at].endpoint.EndpointID, true
	}
}

func (m *matrix) drawTitle(s *draw.Screen, r draw.Rect, c *Context, svc *timeline.Service, sums *matrixSums) {
	title := fmt.Sprintf("%s: %s x %s", key(svc), lanes.Plural(len(sums.rows), "node"), lanes.Plural(len(m.columns), "endpoint"))
	if len(m.columns) > 0 && !m.columns[0].endpoint.IP.IsValid() {
		title = fmt.Sprintf("%s: %s x %s and the frontends", key(svc), lanes.Plural(len(sums.rows), "node"), lanes.Plural(len(m.columns)-1, "endpoint"))
	}
	if sums.differ > 0 {
		title += fmt.Sprintf(", %s", differs(sums.differ))
	}
	var right []string
	beyond := func(sign string, cols []matrixColumn) {
		if len(cols) == 0 {
			return
		}
		n := 0
		for i := range cols {
			if sums.perEnd[cols[i].endpoint.EndpointID] > 0 {
				n++
			}
		}
		t := fmt.Sprintf("%s %d more", sign, len(cols))
		if n > 0 {
			t += fmt.Sprintf(" (%s)", differs(n))
		}
		right = append(right, t)
	}
	last := min(len(m.columns), m.cols.first+m.fit)
	beyond("←", m.columns[:m.cols.first])
	beyond("→", m.columns[last:])
	order := "latest first"
	if m.byName {
		order = "by name"
	}
	s.Rule(r.Min.X, r.Min.Y, r.Dx(), title, strings.Join(append(right, order), "  "))
}

func differs(n int) string {
	if n == 1 {
		return "1 differs"
	}
	return fmt.Sprintf("%d differ", n)
}

func (m *matrix) drawHead(s *draw.Screen, r draw.Rect) {
	y := r.Min.Y + m.head
	s.Text(r.Min.X+3, y, theme.Dim, "node")
	s.Right(m.cellX-2, y, theme.Dim, "behind")
	for i := 0; i < m.fit && m.cols.first+i < len(m.columns); i++ {
		role := theme.Dim
		if m.cols.first+i == m.cols.at {
			role = theme.Accent
		}
		x, title := m.cellX+i*m.cellW, s.Clean(m.columns[m.cols.first+i].title)
		if m.head == 1 {
			s.NameIn(x, y, m.cellW-1, role, title)
			continue
		}
		letters := []rune(title)
		letters = letters[max(0, len(letters)-uprightTitle):]
		for k, l := range letters {
			s.TextIn(x, y-len(letters)+1+k, m.cellW, role, string(l))
		}
	}
}

func (m *matrix) drawRow(s *draw.Screen, r draw.Rect, y int, c *Context, row *matrixRow, cells []matrixCell, p *timeline.Plane) {
	role, here := theme.Text, row.name == m.node
	if here {
		role = theme.Accent
		s.Glyph(r.Min.X+1, y, theme.Accent, s.Glyphs.Chosen)
	}
	s.NameIn(r.Min.X+3, y, m.cellX-r.Min.X-3-12, role, row.name)
	t, tRole := rowState(row, p, c.Now)
	s.Right(m.cellX-2, y, tRole, t)
	for i := 0; i < m.fit && m.cols.first+i < len(cells); i++ {
		x, k := m.cellX+i*m.cellW, m.cols.first+i
		sign, signRole := cellSign(cells[k].state, s.Glyphs)
		if k == m.cols.at && here {
			s.Text(x, y, theme.Selected, sign)
			continue
		}
		// In one style up to the next sign: fewer changes of it go out.
		s.Text(x, y, signRole, sign+pad[:min(len(pad), m.cellW-1, r.Max.X-x-1)])
	}
}

// rowState is how far behind a node is, or why that is not known.
func rowState(row *matrixRow, p *timeline.Plane, now time.Time) (string, theme.Role) {
	hidden, hides := knowledge(p)
	switch {
	case row.node != nil && !row.node.Exists:
		return "gone", theme.Dim
	case row.rank == rankLeftOut && row.node != nil && !row.node.Ready:
		return "not ready", theme.Warn
	case hides && hidden.state == cellBlind:
		return "blind", theme.Warn
	case hides && hidden.state == cellGap:
		return "in a gap", theme.Warn
	case !row.since.IsZero():
		return lanes.Age(max(0, now.Sub(row.since))), theme.Warn
	case hides:
		return "no rules", theme.Dim
	}
	return "", theme.Dim
}

// legendLines is how many lines the legend takes in w columns.
func legendLines(s *draw.Screen, w int) int {
	lines, x := 1, 1
	for _, e := range legendCells {
		n := draw.Width(e.text) + 2
		if x > 1 && x+n > w-1 {
			lines, x = lines+1, 1
		}
		x += n + 2
	}
	return lines
}

func drawMatrixLegend(s *draw.Screen, r draw.Rect, y int) {
	x := 1
	for _, e := range legendCells {
		n := draw.Width(e.text) + 2
		if x > 1 && x+n > r.Dx()-1 {
			y, x = y+1, 1
		}
		sign, role := cellSign(e.state, s.Glyphs)
		s.Text(r.Min.X+x, y, role, sign)
		s.Text(r.Min.X+x+2, y, theme.Dim, e.text)
		x += n + 2
	}
}

// drawDetail spells the chosen cell out in two lines.
func (m *matrix) drawDetail(s *draw.Screen, r draw.Rect, y int, c *Context, svc *timeline.Service, row *matrixRow, cell matrixCell) {
	x := s.NameIn(r.Min.X+1, y, r.Dx()/3, theme.Strong, row.name)
	e := &m.columns[m.cols.at].endpoint
	x = s.Text(x, y, theme.Dim, " → ")
	if e.Pod != "" {
		x = s.NameIn(x, y, max(8, r.Dx()/3), theme.Strong, e.Pod) + 2
	}
	x = s.TextIn(x, y, r.Max.X-x-1, theme.Text, lanes.EndpointText(*e))
	if e.Node != "" {
		s.TextIn(x, y, r.Max.X-x-1, theme.Dim, " on "+e.Node)
	}
	text, role := cellText(cell, c, svc, row.name)
	s.TextIn(r.Min.X+1, y+1, r.Dx()-2, role, text)
}

// cellText says what a cell means and since when.
func cellText(cell matrixCell, c *Context, svc *timeline.Service, node string) (string, theme.Role) {
	what, role := "", theme.Warn
	switch cell.state {
	case cellNotWanted:
		what, role = "not wanted here, and not routed", theme.Dim
	case cellAgrees:
		what, role = "agrees: routed as wanted", theme.Good
	case cellMissing:
		what = "missing: wanted, not routed yet"
	case cellStale, cellStopped:
		what = "stale: still routed, no longer wanted"
	case cellUnexpected:
		what, role = "unexpected: routed, never wanted", theme.Bad
	case cellChanged:
		what = "changed: routed otherwise than wanted"
	case cellBlind:
		what = "not known: nothing observes this node's rules"
		if why := svc.Coverage.BlindWhy[node]; why != "" {
			what = "not known: " + why
		}
	case cellGap:
		what = "not known: a gap"
	case cellNothing:
		return "nothing is known of rules for this Service on this node", theme.Dim
	}
	if !cell.since.IsZero() {
		long := lanes.Duration(max(0, c.Now.Sub(cell.since)))
		at := "since " + moment(cell.since, c)
		if cell.atLeast {
			at = "since at least " + moment(cell.since, c)
		}
		what += ", for " + long + ", " + at
	}
	if !cell.stopped.IsZero() {
		what += "; nothing has answered there for " + lanes.Duration(max(0, c.Now.Sub(cell.stopped)))
		role = theme.Bad
	}
	return what, role
}

// moment writes a time to the millisecond, with the date when that is another
// day.
func moment(t time.Time, c *Context) string {
	t, now := t.In(c.Loc), c.Now.In(c.Loc)
	if t.YearDay() != now.YearDay() || t.Year() != now.Year() {
		return t.Format("Jan 2 15:04:05.000")
	}
	return t.Format("15:04:05.000")
}
