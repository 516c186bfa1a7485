package view

import (
	"cmp"
	"slices"
	"strings"

	"github.com/sahilm/fuzzy"
)

// matchAtOnce is how many names are matched in one go: the list of what matches is
// grown by copying, which for ten thousand names costs as much as matching them.
const matchAtOnce = 128

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
		for chunk := range slices.Chunk(left, matchAtOnce) {
			for _, m := range fuzzy.FindFromNoSort(w, some{names, chunk}) {
				i := chunk[m.Index]
				score[i] += m.Score
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
