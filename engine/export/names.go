package export

import (
	"fmt"
	"maps"
	"slices"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/engine/report"
)

func episodeName(e *report.Episode) string {
	name := ""
	if e.Adds > 0 {
		name += fmt.Sprintf("+%d ", e.Adds)
	}
	if e.Removes > 0 {
		name += fmt.Sprintf("−%d ", e.Removes)
	}
	if name == "" {
		return counted(len(e.Paths), "change")
	}
	return name[:len(name)-1]
}

func counted(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}

func plainAll(list []string) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = collect.Plain(s)
	}
	return out
}

// sortedKeys are the keys of a map in their order.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func sortedInts[V any](m map[int]V) []int { return slices.Sorted(maps.Keys(m)) }
