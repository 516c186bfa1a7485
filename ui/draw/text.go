package draw

import (
	"strings"
	"unicode"

	"github.com/charmbracelet/x/ansi"
)

// Clean makes text from the cluster safe to draw: escape sequences and control
// characters are taken out, so are characters without a width of their own
// (joiners, marks, direction overrides), which terminals disagree about. Line
// breaks and tabs become a space.
func Clean(s string) string {
	if plain(s) {
		return s
	}
	s = ansi.Strip(s)
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\r' || r == '\t':
			return ' '
		case r == unicode.ReplacementChar:
			return '?'
		case unicode.IsControl(r), unicode.In(r, unicode.Cf, unicode.Mn, unicode.Me, unicode.Zl, unicode.Zp, unicode.Co, unicode.Cs):
			return -1
		case r >= 0x1160 && r <= 0x11ff: // Hangul parts without a width
			return -1
		}
		return r
	}, s)
}

// plain reports that nothing but what is safe is in s: ASCII, and the letters and signs
// that texts of our own are made of.
func plain(s string) bool {
	for _, r := range s {
		switch {
		case r >= 0x20 && r <= 0x7e, r >= 0xa1 && r < 0xad, r > 0xad && r < 0x300:
		case r >= 0x2010 && r < 0x2028, r >= 0x2190 && r < 0x2600:
		default:
			return false
		}
	}
	return true
}

func plainASCII(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] < 0x20 || s[i] > 0x7e {
			return false
		}
	}
	return true
}

// Width is the number of columns that cleaned text takes.
func Width(s string) int {
	if plainASCII(s) {
		return len(s)
	}
	n := 0
	for _, r := range s {
		n += runeWidth(r)
	}
	return n
}

// runeWidth is the width of one rune of cleaned text, 1 or 2.
func runeWidth(r rune) int {
	if r < 0x1100 || r >= 0x2010 && r < 0x2e80 && !wideSymbol(r) {
		return 1
	}
	return max(1, min(2, ansi.StringWidthWc(string(r))))
}

// wideSymbol are the blocks of symbols among which some are wide.
func wideSymbol(r rune) bool {
	return r >= 0x231a && r <= 0x23ff || r >= 0x25fd && r <= 0x27bf || r >= 0x2b00
}

// Cut shortens cleaned text to w columns, with an ellipsis at the end.
func Cut(s string, w int, g *Glyphs) string {
	if w <= 0 {
		return ""
	}
	if Width(s) <= w {
		return s
	}
	e := Width(g.Ellipsis)
	if w <= e {
		return strings.Repeat(".", w)
	}
	n := 0
	for i, r := range s {
		k := runeWidth(r)
		if n+k > w-e {
			return s[:i] + g.Ellipsis
		}
		n += k
	}
	return s
}

// CutMiddle shortens cleaned text to w columns and keeps both ends, the last
// part longer: pod names differ at their end.
func CutMiddle(s string, w int, g *Glyphs) string {
	if Width(s) <= w {
		return s
	}
	e := Width(g.Ellipsis)
	if w < 8+e {
		return Cut(s, w, g)
	}
	// The generated suffix of a pod's name.
	tail := (w - e) / 2
	if i := strings.LastIndexByte(s, '-'); i > 0 && len(s)-i <= w-e-3 && len(s)-i >= 2 {
		tail = len(s) - i
	}
	head := w - e - tail
	rs := []rune(s)
	i, n := 0, 0
	for i < len(rs) && n+runeWidth(rs[i]) <= head {
		n += runeWidth(rs[i])
		i++
	}
	j, m := len(rs), 0
	for j > i && m+runeWidth(rs[j-1]) <= tail {
		m += runeWidth(rs[j-1])
		j--
	}
	return string(rs[:i]) + g.Ellipsis + string(rs[j:])
}
