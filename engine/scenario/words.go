package scenario

import (
	"errors"
	"strings"
)

// words splits a command line as a shell does: blanks separate, quotes hold together.
func words(line string) (out []string, err error) {
	var word strings.Builder
	begun := false
	quote := rune(0)
	for _, r := range line {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '\'' || r == '"'):
			quote, begun = r, true
		case quote == 0 && (r == ' ' || r == '\t' || r == '\n'):
			if begun {
				out = append(out, word.String())
			}
			word.Reset()
			begun = false
		default:
			word.WriteRune(r)
			begun = true
		}
	}
	if quote != 0 {
		return nil, errors.New("a quote is not closed")
	}
	if begun {
		out = append(out, word.String())
	}
	return out, nil
}
