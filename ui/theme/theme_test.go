package theme

import (
	"image/color"
	"testing"

	"github.com/charmbracelet/x/ansi"
)

func TestTextIsLegibleOnUsualBackgrounds(t *testing.T) {
	for _, c := range []struct {
		theme *Theme
		on    []color.Color
		least float64
	}{{&Dark, DarkBackgrounds, 4.5}, {&Light, LightBackgrounds, 4.5}, {&HighContrast, DarkBackgrounds, 7}, {&HighContrastLight, LightBackgrounds, 7}} {
		for r := Role(0); r < roles; r++ {
			st := c.theme.Style(r)
			if st.Fg == nil {
				t.Errorf("%s: role %d has no colour", c.theme.Name, r)
				continue
			}
			backs, least := c.on, c.least
			if st.Bg != nil {
				backs = []color.Color{st.Bg}
			}
			if r == Line {
				least -= 1.5 // not text: WCAG's bound for graphics
			}
			for _, b := range backs {
				if got := Contrast(st.Fg, b); got < least {
					t.Errorf("%s: role %d has contrast %.2f on %v, want %.1f", c.theme.Name, r, got, b, least)
				}
			}
		}
	}
}

func TestContrastOfBlackAndWhiteIsTwentyOne(t *testing.T) {
	if got := Contrast(color.White, color.Black); got < 20.99 || got > 21.01 {
		t.Errorf("%f", got)
	}
}

func TestThemesAreFoundByName(t *testing.T) {
	for _, n := range Names {
		th, err := ByName(n)
		if err != nil || th != nil && th.Name != n || th == nil && n != "auto" {
			t.Errorf("%s: %v, %v", n, th, err)
		}
	}
	if _, err := ByName("pink"); err == nil {
		t.Error("pink is a theme")
	}
}

func TestSixteenColoursAvoidYellowOnLight(t *testing.T) {
	for r := Role(0); r < roles; r++ {
		switch ANSILight.Style(r).Fg {
		case ansi.Yellow, ansi.BrightYellow, ansi.White, ansi.BrightWhite, ansi.BrightCyan, ansi.BrightGreen:
			t.Errorf("role %d cannot be read on white", r)
		}
		switch ANSI.Style(r).Fg {
		case ansi.Black, ansi.Blue, ansi.Red:
			t.Errorf("role %d cannot be read on black", r)
		}
	}
}

func TestWithoutColoursWarningsStillStandOut(t *testing.T) {
	for _, r := range []Role{Warn, Bad, Accent, Selected} {
		st := Plain.Style(r)
		if st.Fg != nil || st.Bg != nil || !(st.Bold || st.Invert || st.Underline) {
			t.Errorf("role %d is %+v", r, st)
		}
	}
}
