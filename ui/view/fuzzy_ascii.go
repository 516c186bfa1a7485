package view

import "unicode/utf8"

// How github.com/sahilm/fuzzy judges a match.
const (
	fuzzyFirst       = 10
	fuzzyAfterSep    = 20
	fuzzyCamel       = 20
	fuzzyAdjacent    = 5
	fuzzyLeading     = -5
	fuzzyMostLeading = -15
)

// fuzzyASCII is the score that github.com/sahilm/fuzzy gives a name for a pattern, both
// of ASCII alone and without NUL; ok is false when it does not match. It takes no
// memory: the library makes two lists for each name that matches, which among ten
// thousand names costs more than a frame may.
func fuzzyASCII(pattern, name string) (score int, ok bool) {
	const none = -1
	matched, last := 0, none // how many characters of pattern have a place, and the last one's
	best, bestAt, adjacent := none, none, 0
	for j := 0; j < len(name); j++ {
		if lower(name[j]) == lower(pattern[matched]) {
			s := 0
			if j == 0 {
				s += fuzzyFirst
			} else {
				if isLower(name[j-1]) && isUpper(name[j]) {
					s += fuzzyCamel
				}
				if isSeparator(name[j-1]) {
					s += fuzzyAfterSep
				}
			}
			if last != none && last == j-1 {
				bonus := 2*adjacent + fuzzyAdjacent
				s += bonus
				adjacent += bonus
			}
			if s > best {
				best, bestAt = s, j
			}
		}
		// The best place is taken when the next character comes up, or the end.
		end := j+1 == len(name)
		if !end && (matched+1 == len(pattern) || lower(pattern[matched+1]) != lower(name[j+1])) || bestAt == none {
			continue
		}
		if matched == 0 {
			best += max(bestAt*fuzzyLeading, fuzzyMostLeading)
		}
		score, last = score+best, bestAt
		best, bestAt = none, none
		matched++
	}
	return score + matched - len(name), matched == len(pattern)
}

func isLower(c byte) bool { return 'a' <= c && c <= 'z' }
func isUpper(c byte) bool { return 'A' <= c && c <= 'Z' }

func lower(c byte) byte {
	if isUpper(c) {
		return c + 'a' - 'A'
	}
	return c
}

func isSeparator(c byte) bool {
	switch c {
	case '/', '-', '_', ' ', '.', '\\':
		return true
	}
	return false
}

// plainASCII tells whether fuzzyASCII may be asked about s.
func plainASCII(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] == 0 || s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return s != ""
}
