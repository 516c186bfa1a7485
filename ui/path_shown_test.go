package ui_test

import (
	"strings"
	"testing"

	"github.com/kconverge/kconverge/engine/lanes/lanestest"
)

// TestPathIsOfTheLastChangeOrTheOneUnderTheCursor, not of one that was looked at before.
func TestPathIsOfTheLastChangeOrTheOneUnderTheCursor(t *testing.T) {
	s := newScreen(t, 120, 40, nil).show(lanestest.Converging()).press("3")
	last := s.text()
	if !strings.Contains(last, "change 5 of 5") {
		t.Fatal(last)
	}
	s.press("p", "p", "2")
	s.press("f", "3").has("change 5 of 5")
	// The cursor stands where the first addition began.
	s.press("2", "[", "[", "[", "3").lacks("change 5 of 5")
}
