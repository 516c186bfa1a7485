package draw

import (
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"pgregory.net/rapid"

	"github.com/kconverge/kconverge/ui/theme"
)

func TestTextIsClippedAtTheEdges(t *testing.T) {
	s := NewScreen(6, 2, &theme.Plain, &Unicode)
	s.Text(-2, 0, theme.Text, "abcdefghij")
	s.Text(4, 1, theme.Text, "x\u4e2d\u6587")
	s.Text(0, 5, theme.Text, "below")
	if got := s.String(); got != "cdefgh\n    x" {
		t.Errorf("%q", got)
	}
}

func TestWritingOverHalfAWideCharacterLeavesNoOtherHalf(t *testing.T) {
	s := NewScreen(6, 1, &theme.Plain, &Unicode)
	s.Text(0, 0, theme.Text, "\u4e2d\u6587")
	s.Text(1, 0, theme.Text, "x")
	if got := s.String(); got != " x\u6587" {
		t.Errorf("%q", got)
	}
}

func TestLinesAreNeverWiderThanTheScreen(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := NewScreen(20, 3, &theme.Dark, &Unicode)
		for i := rapid.IntRange(0, 12).Draw(t, "n"); i > 0; i-- {
			s.Text(rapid.IntRange(-5, 22).Draw(t, "x"), rapid.IntRange(-1, 3).Draw(t, "y"), theme.Role(rapid.IntRange(0, 9).Draw(t, "role")), rapid.String().Draw(t, "text"))
		}
		for _, l := range strings.Split(s.Render(), "\n") {
			if w := ansi.StringWidthWc(l); w > 20 {
				t.Fatalf("%q is %d wide", l, w)
			}
		}
	})
}

func TestARuleHasItsTitles(t *testing.T) {
	s := NewScreen(40, 1, &theme.Plain, &Unicode)
	s.Rule(0, 0, 40, "left", "right")
	if got := s.String(); got != "── left ────────────────────── right ───" {
		t.Errorf("%q", got)
	}
	s = NewScreen(12, 1, &theme.Plain, &ASCII)
	s.Rule(0, 0, 12, "a long title", "right")
	if got := s.String(); len(got) != 12 || !strings.HasPrefix(got, "-- a ") {
		t.Errorf("%q", got)
	}
}

func TestAsciiScreensHoldAsciiOnly(t *testing.T) {
	s := NewScreen(40, 1, &theme.Plain, &ASCII)
	s.TextIn(0, 0, 40, theme.Text, "− → ▸ … ± ● 3×4 µs")
	for _, r := range s.String() {
		if r > 0x7e {
			t.Errorf("%q in %q", r, s.String())
		}
	}
}
