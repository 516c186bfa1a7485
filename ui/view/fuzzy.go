package view

import (
	"cmp"
	"slices"
	"strings"

	"github.com/sahilm/fuzzy"
)

// Match filters names by a pattern of several words: each must match fuzzily,
// a word with "!" in front must not be contained. The best matches come first;
// without a pattern the order stays. It returns indexes.
func Match(pattern string, names []string) []int {
	left := make([]int, len(names)) // indexes of those that match so far
	for i := range left {
		left[i] = i
	}
	var words []string
	for _, w := range strings.Fields(pattern) {
		out, not := strings.CutPrefix(strings.ToLower(w), "!")
		switch {
		case !not:
			words = append(words, w)
		case out != "":
			left = slices.DeleteFunc(left, func(i int) bool { return strings.Contains(strings.ToLower(names[i]), out) })
		}
	}
	if len(words) == 0 {
		return left
	}
	score := make([]int, len(names))
	for _, w := range words {
		next := make([]int, 0, len(left))
		plain := plainASCII(w)
		for _, i := range left {
			n, ok := 0, false
			if plain && plainASCII(names[i]) {
				n, ok = fuzzyASCII(w, names[i])
			} else if m := fuzzy.FindFromNoSort(w, some{names, []int{i}}); len(m) > 0 {
				n, ok = m[0].Score, true
			}
			if ok {
				score[i] += n
				next = append(next, i)
			}
		}
		left = next
	}
	slices.SortStableFunc(left, func(a, b int) int {
		return cmp.Or(cmp.Compare(score[b], score[a]), cmp.Compare(a, b))
	})
	return left
}

// some are the names with the given indexes.
type some struct {
	names []string
	idx   []int
}

func (s some) String(i int) string { return s.names[s.idx[i]] }
func (s some) Len() int            { return len(s.idx) }
