package lanes_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/kconverge/kconverge/engine/lanes"
	"github.com/kconverge/kconverge/engine/lanes/lanestest"
)

// TestWhatARemovalNeedsIsNotWhatFallsOff: however few lines there are from six on, the
// preStop is in them.
func TestWhatARemovalNeedsIsNotWhatFallsOff(t *testing.T) {
	s := lanestest.Converging()
	for _, p := range s.Service("default", "web").Paths {
		all := lanes.Change(p, s.Now, nil, 100)
		needs := func(l lanes.ChangeLine) bool { return strings.Contains(l.Text, "preStop") }
		if !slices.ContainsFunc(all, needs) {
			continue
		}
		for room := 6; room < 12; room++ {
			lines := lanes.Change(p, s.Now, nil, room)
			if !slices.ContainsFunc(lines[:min(room, len(lines))], needs) {
				t.Errorf("%s in %d lines: %+v", p.ID, room, lines)
			}
		}
		return
	}
	t.Error("no removal needs a preStop")
}
