package ui_test

import (
	"strings"
	"testing"

	"github.com/kconverge/kconverge/engine/lanes/lanestest"
)

func TestTwoMarksGiveTheTimeBetween(t *testing.T) {
	s := newScreen(t, 120, 40, nil).show(lanestest.Converging()).press("left", "left", "left", "m")
	if !strings.Contains(s.text(), "marked A; move, and mark B") {
		t.Fatal(s.text())
	}
	s.press("H") // ten cells back: the second mark is the earlier one
	cell := strings.Contains(s.text(), "here to A 1.25 s")
	s.press("m")
	lines := strings.Split(s.text(), "\n")
	axis := lines[5]
	if !cell || !strings.Contains(lines[3], "B to A 1.25 s") || strings.Index(axis, "B") < 0 || strings.Index(axis, "A") < strings.Index(axis, "B") {
		t.Fatalf("%v\n%s", cell, s.text())
	}
	s.press("m")
	if text := s.text(); strings.Contains(text, "to A") || !strings.Contains(text, "/screen") {
		t.Error(text)
	}
}
