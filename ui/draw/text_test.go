package draw

import (
	"strings"
	"testing"
	"unicode"

	"github.com/charmbracelet/x/ansi"
	"pgregory.net/rapid"
)

func TestCleanTakesOutWhatCouldDriveATerminal(t *testing.T) {
	for in, want := range map[string]string{
		"web":                                  "web",
		"\x1b[31mred\x1b[0m":                   "red",
		"\x1b]0;title\x07web":                  "web",
		"\x1b]8;;http://evil\x1b\\link":        "link",
		"a\nb\tc\rd":                           "a b c d",
		"a\u202eb\u200dc":                      "abc",
		"\u009b31mx":                           "31mx",
		"e\u0301":                              "e",
		"\u4e2d\u6587":                         "\u4e2d\u6587",
		"\u0627\u0644\u0639\u0631\u0628\u064a": "\u0627\u0644\u0639\u0631\u0628\u064a",
		"bad\xff\xfeutf":                       "badutf",
	} {
		if got := Clean(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestCleanTextHasNoControlCharactersAndAWidthTerminalsAgreeOn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Clean(rapid.String().Draw(t, "s"))
		for _, r := range s {
			if unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Mn) {
				t.Fatalf("%q keeps %U", s, r)
			}
		}
		n := 0
		for _, r := range s {
			w := ansi.StringWidthWc(string(r))
			if w != runeWidth(r) && w != 0 {
				t.Fatalf("%U is %d wide, taken for %d", r, w, runeWidth(r))
			}
			n += runeWidth(r)
		}
		if Width(s) != n {
			t.Fatalf("width %d, want %d", Width(s), n)
		}
	})
}

func TestCutNeverExceedsItsWidth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, w := Clean(rapid.String().Draw(t, "s")), rapid.IntRange(0, 40).Draw(t, "w")
		g := &Unicode
		if rapid.Bool().Draw(t, "ascii") {
			g = &ASCII
		}
		for _, got := range []string{Cut(s, w, g), CutMiddle(s, w, g)} {
			if Width(got) > w {
				t.Fatalf("%q cut to %d is %q, %d wide", s, w, got, Width(got))
			}
			if Width(s) <= w && got != s {
				t.Fatalf("%q fits %d and became %q", s, w, got)
			}
		}
	})
}

func TestNamesKeepTheirGeneratedEnd(t *testing.T) {
	if got := CutMiddle("web-7d9c4b6f8-x7k2p", 14, &Unicode); got != "web-7d9…-x7k2p" {
		t.Errorf("%q", got)
	}
	long := strings.Repeat("a", 247) + "-x7k2p"
	if got := CutMiddle(long, 20, &Unicode); Width(got) != 20 || !strings.HasSuffix(got, "…-x7k2p") {
		t.Errorf("%q", got)
	}
}

func TestInASCIIASignDoesNotMeanManyThings(t *testing.T) {
	g := &ASCII
	for name, s := range map[string]string{"tentative": g.AgreesMaybe, "unready": g.Unready, "fold": g.Fold, "cut off": g.Ellipsis, "fold, in texts": g.Subst.Replace("≈"), "cut off, in texts": g.Subst.Replace("…")} {
		if strings.Contains(s, "~") {
			t.Errorf("%s is %q, as a change is", name, s)
		}
	}
	if g.Action == g.Alert {
		t.Errorf("an action and an alert are both %q", g.Action)
	}
	seen := map[string]bool{}
	for _, s := range []string{g.Agrees, g.AgreesMaybe, g.Behind, g.BehindMaybe, g.Stale, g.Gap, g.Blind, g.Claimed, g.Existed, g.Fold, g.CursorLine} {
		if seen[s] {
			t.Errorf("two things that a plane's lane may show are both %q", s)
		}
		seen[s] = true
	}
}

func TestEveryGlyphTakesOneColumn(t *testing.T) {
	for _, g := range []*Glyphs{&Unicode, &ASCII} {
		for _, s := range []string{g.Agrees, g.Behind, g.Stale, g.Gap, g.Blind, g.AgreesMaybe, g.BehindMaybe, g.Pending, g.Starting, g.Ready, g.Unready,
			g.Terminating, g.ReadyAt, g.UnreadyAt, g.TerminatingAt, g.StoppedAt, g.Claimed, g.Existed, g.Action, g.Dot, g.Alert, g.Fold, g.SpanBegin, g.Span, g.SpanEnd,
			g.SpanOpen, g.H, g.V, g.TDown, g.TUp, g.TickMajor, g.TickMinor, g.AxisLeft, g.AxisRight, g.Cursor, g.CursorLine, g.Chosen, g.Live,
			g.Paused, g.Converging, g.Converged, g.Stalled, g.Work, g.Wait, g.Bar, g.Caret} {
			if len([]rune(s)) != 1 || Width(s) != 1 {
				t.Errorf("%s: glyph %q", g.Name, s)
			}
			if g == &ASCII && s[0] >= 0x80 {
				t.Errorf("ascii: glyph %q", s)
			}
		}
	}
}

func TestPlanesAreToldApartByShapeAlone(t *testing.T) {
	for _, g := range []*Glyphs{&Unicode, &ASCII} {
		seen := map[string]string{}
		for name, s := range map[string]string{"agrees": g.Agrees, "behind": g.Behind, "stale": g.Stale, "gap": g.Gap, "blind": g.Blind, "tentative": g.AgreesMaybe, "tentatively behind": g.BehindMaybe, "claimed": g.Claimed, "existed": g.Existed} {
			if other, ok := seen[s]; ok {
				t.Errorf("%s: %s and %s are both %q", g.Name, name, other, s)
			}
			seen[s] = name
		}
		seen = map[string]string{}
		for name, s := range map[string]string{"pending": g.Pending, "starting": g.Starting, "ready": g.Ready, "unready": g.Unready, "terminating": g.Terminating, "claimed": g.Claimed} {
			if other, ok := seen[s]; ok {
				t.Errorf("%s: %s and %s are both %q", g.Name, name, other, s)
			}
			seen[s] = name
		}
	}
}

func TestWhatIsPlainNeedsNoCleaning(t *testing.T) {
	n := 0
	for r := rune(1); r < 0x3000; r++ {
		if !plain(string(r)) {
			continue
		}
		n++
		if unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Mn, unicode.Me, unicode.Zl, unicode.Zp, unicode.Co, unicode.Cs) || ansi.Strip(string(r)) != string(r) {
			t.Errorf("%q is taken for plain", r)
		}
	}
	if n < 1500 || plain("\x1b[1m") || plain("\xff") || !plain("−2 → 5, ±1 ms · ≤ 3") {
		t.Errorf("%d characters are plain", n)
	}
}
