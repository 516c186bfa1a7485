package ui_test

import (
	"strings"
	"testing"

	"github.com/kconverge/kconverge/engine/lanes/lanestest"
)

// TestAChangeIsShownBesideAnother: the last addition is kept, the one before it is shown
// with its times, and what is usual comes back when it is let go.
func TestAChangeIsShownBesideAnother(t *testing.T) {
	usual := lanestest.UsualAddition()
	slow := usual
	slow.Sync[1] = 2 * usual.Sync[1] * 20
	snap := lanestest.Additions(usual, usual, slow)
	s := newScreen(t, 120, 40, nil).show(snap).press("3", "C")
	if !strings.Contains(s.text(), "is kept: choose another") || !strings.Contains(s.text(), "usual p50") {
		t.Fatal(s.text())
	}
	s.press("p", "p")
	text := s.text()
	if !strings.Contains(text, " less than + p3") || !strings.Contains(text, "rules, 3 nodes.") || strings.Contains(text, "usual p50") {
		t.Fatal(text)
	}
	line := ""
	for l := range strings.Lines(text) {
		if strings.Contains(l, " n2 ") {
			line = l
			break
		}
	}
	if !strings.Contains(line, "60 ms") || !strings.Contains(line, "2.40 s") {
		t.Errorf("%q does not have both times of n2\n%s", line, text)
	}
	s.press("C")
	if text := s.text(); !strings.Contains(text, "usual again") || !strings.Contains(text, "usual p50") {
		t.Error(text)
	}
}
