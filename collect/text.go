package collect

import (
	"strings"
	"unicode"
)

// Plain makes text that comes from a cluster safe to print on one line: line
// breaks and tabs become a space; what a terminal would obey (control
// characters, so also the start of every escape sequence) and what it would not
// show (direction overrides and other format characters) is taken out.
func Plain(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\r' || r == '\t':
			return ' '
		case unicode.IsControl(r), unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp):
			return -1
		}
		return r
	}, s)
}
