package ui_test

import (
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/kconverge/kconverge/engine/lanes/lanestest"
	"github.com/kconverge/kconverge/engine/timeline"
)

// matrixNodes is what stands first in each line between the head of the matrix and its
// legend: the chosen sign and the node.
func matrixNodes(s *screen) (nodes []string, chosen string) {
	lines := strings.Split(s.text(), "\n")
	for i, l := range lines {
		if !strings.HasPrefix(l, "   node ") {
			continue
		}
		for _, l := range lines[i+1:] {
			f := strings.Fields(l)
			if len(f) == 0 || f[0] == "=" {
				return nodes, chosen
			}
			if f[0] == "›" {
				f = f[1:]
				chosen = f[0]
			}
			nodes = append(nodes, f[0])
		}
	}
	return nodes, chosen
}

func order(t *testing.T, s *screen, want, chosen string) {
	t.Helper()
	nodes, at := matrixNodes(s)
	if got := strings.Join(nodes, " "); got != want || at != chosen {
		t.Errorf("nodes %q with %q chosen, want %q with %q", got, at, want, chosen)
	}
}

func TestTheLatestNodesOfTheMatrixStandFirst(t *testing.T) {
	s := newScreen(t, 120, 40, nil).show(manyEndpoints(7, 9)).press("4", "x")
	// Three seconds, two, less than one; then what is not seen; then by name.
	order(t, s, "node-05 node-07 node-02 node-03 node-04 node-01 node-06 node-08 node-09", "node-01")
	s.press("o").has("nodes by name")
	order(t, s, "node-01 node-02 node-03 node-04 node-05 node-06 node-07 node-08 node-09", "node-01")
	s.press("o", "g").has("node-05 → web-7d9c4b-az0xq", "agrees: routed as wanted, for 3m42s, since at least 12:00:27.500")
}

func TestTheChosenNodeAndEndpointStayWhileTheOrderMoves(t *testing.T) {
	s := newScreen(t, 120, 40, nil).show(manyEndpoints(7, 9)).press("4", "x", "g", "l", "l", "l", "l", "l")
	s.has("node-05 → web-7d9c4b-fz5xq", "stale: still routed, no longer wanted, for 2.99 s", "nothing has answered there for")
	// Another node falls behind for longer, and an endpoint comes before it.
	snap := manyEndpoints(7, 9)
	svc := snap.Services[0]
	old := timeline.Difference{Plane: timeline.PlaneID{Kind: timeline.PlaneRules, Node: "node-09"}, Kind: "missing", Since: snap.Now.Add(-time.Minute)}
	svc.Differences = append([]timeline.Difference{old}, svc.Differences...)
	s.show(snap)
	order(t, s, "node-09 node-05 node-07 node-02 node-03 node-04 node-01 node-06 node-08", "node-05")
	s.has("node-05 → web-7d9c4b-fz5xq", "7 endpoints and the frontends", "front")
	s.press("g", "H").has("node-09 → frontends", "missing: wanted, not routed yet, for 1m00s")
}

func TestEveryKindOfCellIsSpelledOut(t *testing.T) {
	s := newScreen(t, 120, 40, nil).show(manyEndpoints(7, 9)).press("4", "x", "o", "g")
	s.has("not wanted here, and not routed")
	s.press("j", "l").has("unexpected: routed, never wanted, for 0.90 s")
	s.press("l").has("changed: routed otherwise than wanted, for 0.80 s")
	s.press("j").has("not known: a gap, for 1.50 s")
	s.press("j").has("not known: nothing observes this node's rules")
	s.press("G", "k", "k", "L").has("node-07 → web-7d9c4b-gz6xq", "missing: wanted, not routed yet")
}

func TestTheMatrixJumpsBetweenCellsThatDiffer(t *testing.T) {
	s := newScreen(t, 120, 40, nil).show(manyEndpoints(7, 9)).press("4", "x", "g", "H")
	for _, want := range []string{
		"node-05 → web-7d9c4b-fz5xq", "node-07 → web-7d9c4b-gz6xq", "node-02 → web-7d9c4b-bz1xq", "node-02 → web-7d9c4b-cz2xq", "node-05 → web-7d9c4b-fz5xq",
	} {
		s.press("v").has(want)
	}
	s.has("cell 1 of 4 that differ")
	s.press("V").has("node-02 → web-7d9c4b-cz2xq").press("V", "V").has("node-07 → web-7d9c4b-gz6xq").press("enter").has("[3 Path]", "web-7d9c4b-gz6xq")
	newScreen(t, 120, 40, nil).show(lanestest.Converged()).press("4", "x", "v").has("no cell differs")
}

func TestAJumpReachesCellsThatAreOutOfSight(t *testing.T) {
	s := newScreen(t, 80, 24, nil).show(manyEndpoints(100, 50)).press("4", "x", "o", "g", "v")
	s.has("node-02 → web-7d9c4b-").press("v", "v").has("cell 3 of ", "node-05 → web-7d9c4b-uw8xq")
}

func TestEnterInTheMatrixOpensThePathOfTheCell(t *testing.T) {
	s := newScreen(t, 120, 40, nil).show(lanestest.Converging()).press("4", "x", "g", "L", "enter")
	s.has("[3 Path]", "web-7d9c4b-x7k2p")
	s.press("4").has("[4 Nodes]", "3 nodes x 7 endpoints").press("H", "enter").has("no change of it is known")
	s.press("esc").has("rules", "generation").lacks("endpoints,")
}

func TestTheMouseChoosesACellOfTheMatrix(t *testing.T) {
	s := newScreen(t, 120, 40, nil).show(lanestest.Converging()).press("4", "x")
	row, col := -1, -1
	for y, l := range strings.Split(s.text(), "\n") {
		if strings.Contains(l, "x7k2p") && row < 0 {
			col = strings.Index(l, "x7k2p")
		}
		if strings.HasPrefix(l, "   node-3 ") {
			row = y
		}
	}
	click := tea.MouseClickMsg{X: col, Y: row, Button: tea.MouseLeft}
	s.send(click).has("node-3 → web-7d9c4b-x7k2p", "stale")
	s.send(tea.MouseClickMsg{X: 2, Y: row + 1, Button: tea.MouseLeft}).has("node-1 → web-7d9c4b-x7k2p")
	s.send(tea.MouseWheelMsg{X: 2, Y: row, Button: tea.MouseWheelDown}).has("node-2 → web-7d9c4b-x7k2p")
	s.send(click, click).has("[3 Path]", "web-7d9c4b-x7k2p")
}

func TestMoreEndpointsThanColumnsAreCountedAndReached(t *testing.T) {
	s := newScreen(t, 80, 24, nil).show(manyEndpoints(100, 50)).press("4", "x")
	s.has("→ 76 more (2 differ)")
	for range 9 {
		s.press("L")
	}
	s.has("← 67 more", "→ 9 more (2 differ)").press("L").has("← 76 more (2 differ)").lacks("→ 9").has("web-7d9c4b-vw9xq")
}

func TestTheMatrixNeedsAServiceWithRules(t *testing.T) {
	snap := manyServices()
	s := newScreen(t, 120, 40, nil).show(snap)
	s.press("1", "/").press(strings.Split("search", "")...)
	s.press("enter", "enter", "4", "x").has("no node has rules for it: headless")
}
