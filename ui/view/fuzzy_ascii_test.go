package view

import (
	"testing"

	"github.com/sahilm/fuzzy"
	"pgregory.net/rapid"
)

// TestNamesOfASCIIAreJudgedAsByTheLibrary: few letters, so that patterns match often
// and in several ways.
func TestNamesOfASCIIAreJudgedAsByTheLibrary(t *testing.T) {
	matches := 0
	rapid.Check(t, func(t *rapid.T) {
		pattern := rapid.StringMatching(`[abAB/. -]{1,5}`).Draw(t, "pattern")
		name := rapid.StringMatching(`[abcABC/._ \\-]{0,14}`).Draw(t, "name")
		score, ok := fuzzyASCII(pattern, name)
		want := fuzzy.FindFromNoSort(pattern, some{[]string{name}, []int{0}})
		if ok != (len(want) == 1) || ok && score != want[0].Score {
			t.Fatalf("%q in %q: %d, %v; the library says %+v", pattern, name, score, ok, want)
		}
		if ok {
			matches++
		}
	})
	if matches == 0 {
		t.Error("nothing matched")
	}
}
