package faults

import (
	"fmt"
	"slices"
	"strings"
)

// Definition says what a fault is.
type Definition struct {
	Name string
	// Value is the syntax of the amount, Target that of what it may be limited to
	// with "@"; "" where it cannot be.
	Value, Target string
	// Does says what goes wrong, See where one sees it.
	Does, See string
	// Example is a whole setting, NAME=AMOUNT[@TARGET].
	Example string
	// OwnPlane: it acts in the lab's own API server or controllers, and is not to be
	// had with Kubernetes' own programs.
	OwnPlane bool

	amount func(string) (amount, error)
	target func(string) (target, error)
}

// Definitions are all faults, in the order in which people should read of them.
func Definitions() []Definition { return slices.Clone(catalogue) }

// Lookup finds a fault by its name. The error names the nearest.
func Lookup(name string) (Definition, error) {
	for _, d := range catalogue {
		if d.Name == name {
			return d, nil
		}
	}
	hint := "kconverge lab faults lists them"
	if near := nearest(name); near != "" {
		hint = fmt.Sprintf("did you mean %s? %s", near, hint)
	}
	return Definition{}, fmt.Errorf("no fault is called %q: %s", name, hint)
}

// nearest is the name that has the same beginning or the same word, "" for none.
func nearest(name string) string {
	first, last, _ := strings.Cut(name, "-")
	for _, d := range catalogue {
		a, b, _ := strings.Cut(d.Name, "-")
		switch {
		case strings.ReplaceAll(d.Name, "-", "") == strings.ToLower(strings.NewReplacer("-", "", "_", "").Replace(name)),
			b != "" && b == first, last != "" && a == first && strings.HasPrefix(b, last[:1]):
			return d.Name
		}
	}
	for _, d := range catalogue {
		if a, _, _ := strings.Cut(d.Name, "-"); a == first {
			return d.Name
		}
	}
	return ""
}
