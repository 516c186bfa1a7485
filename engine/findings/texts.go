package findings

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/kconverge/kconverge/engine/lanes"
)

// few is how many names a message has at most.
const few = 3

// names lists the first few of several, sorted, and counts the rest: "a, b, c and 4
// more".
func names(list []string) string {
	list = slices.Compact(slices.Sorted(slices.Values(list)))
	if n := len(list) - few; n > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(list[:few], ", "), n)
	}
	return strings.Join(list, ", ")
}

func age(d time.Duration) string { return lanes.Age(d) }

func plural(n int, one string) string { return lanes.Plural(n, one) }

// isAre is the verb that goes with a number.
func isAre(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

// verb is a regular verb in the form that goes with a number: "fail", "fails".
func verb(n int, plain string) string {
	if n == 1 {
		return plain + "s"
	}
	return plain
}

// noneOf says of a number of things that none of them does something: "none of the 4
// pods has it", "not even the only pod has it", "there is no pod".
func noneOf(n int, one, many, does string) string {
	switch n {
	case 0:
		return "there is no " + one
	case 1:
		return "not even the only " + one + " " + does
	}
	return fmt.Sprintf("none of the %d %s %s", n, many, does)
}

// labels writes a selector or labels as kubectl takes them, sorted: "app=web,tier=x".
func labels(m map[string]string) string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		out = append(out, k+"="+m[k])
	}
	return strings.Join(out, ",")
}

// shell quotes a word of a command line where it needs that: names come from the
// cluster, and lines are pasted.
func shell(word string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:=,@%+", r)
	}
	if word != "" && !strings.ContainsFunc(word, func(r rune) bool { return !plain(r) }) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// distance is how many characters have to be put in, taken out, replaced or swapped with
// the next to make one text of the other (optimal string alignment), up to limit; more
// counts as limit+1.
func distance(a, b string, limit int) int {
	x, y := []rune(a), []rune(b)
	if len(x)-len(y) > limit || len(y)-len(x) > limit {
		return limit + 1
	}
	d := make([][]int, len(x)+1)
	for i := range d {
		d[i] = make([]int, len(y)+1)
		d[i][0] = i
	}
	for k := range d[0] {
		d[0][k] = k
	}
	for i := 1; i <= len(x); i++ {
		for k := 1; k <= len(y); k++ {
			cost := 1
			if x[i-1] == y[k-1] {
				cost = 0
			}
			d[i][k] = min(d[i-1][k]+1, d[i][k-1]+1, d[i-1][k-1]+cost)
			if i > 1 && k > 1 && x[i-1] == y[k-2] && x[i-2] == y[k-1] {
				d[i][k] = min(d[i][k], d[i-2][k-2]+1)
			}
		}
	}
	return min(d[len(x)][len(y)], limit+1)
}

// mistyped reports that one text was probably meant to be the other: they differ in a
// character of each three or so, and not in digits only, as web-1 and web-2 do.
func mistyped(a, b string) bool {
	if d := len(a) - len(b); d > 8 || d < -8 {
		return false // more than two characters, however wide
	}
	letters := func(s string) string {
		return strings.Map(func(r rune) rune {
			if r >= '0' && r <= '9' {
				return -1
			}
			return r
		}, s)
	}
	if a == b || letters(a) == letters(b) {
		return false
	}
	limit := min(2, min(len(a), len(b))/3)
	return strings.EqualFold(a, b) || limit > 0 && distance(a, b, limit) <= limit
}
