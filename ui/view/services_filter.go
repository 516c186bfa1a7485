package view

import (
	"slices"
	"strings"

	"github.com/kconverge/kconverge/engine/timeline"
)

// filterServices leaves the Services that a filter asks for. Its words are those of
// Match, and two more: "NAMESPACE/" leaves those of namespaces that begin so,
// "state:STATE" those whose state begins so; "risk" counts as one, of Services that
// route to what cannot answer, and "blind", of those not seen as a whole. "!" in front
// turns each round.
func filterServices(filter string, all []*timeline.Service) []*timeline.Service {
	return pickServices(filter, all, keysOf(all))
}

func keysOf(all []*timeline.Service) []string {
	keys := make([]string, len(all))
	for i, s := range all {
		keys[i] = key(s)
	}
	return keys
}

// pickServices is filterServices with the Services' keys, which are not made anew
// for each character that is typed.
func pickServices(filter string, all []*timeline.Service, keys []string) []*timeline.Service {
	var words []string
	left, names := all, keys
	for _, w := range strings.Fields(filter) {
		word, not := strings.CutPrefix(strings.ToLower(w), "!")
		var fits func(*timeline.Service) bool
		if state, ok := strings.CutPrefix(word, "state:"); ok {
			fits = func(s *timeline.Service) bool { return inState(s, state) }
		} else if ns, name, ok := strings.Cut(word, "/"); ok && ns != "" {
			fits = func(s *timeline.Service) bool {
				return strings.HasPrefix(strings.ToLower(s.Namespace), ns) && (name == "" || strings.Contains(strings.ToLower(s.Name), name))
			}
		} else {
			words = append(words, w)
			continue
		}
		var l []*timeline.Service
		var n []string
		for i, s := range left {
			if fits(s) != not {
				l, n = append(l, s), append(n, names[i])
			}
		}
		left, names = l, n
	}
	if len(words) == 0 {
		return left
	}
	found := Match(strings.Join(words, " "), names)
	out := make([]*timeline.Service, len(found))
	for k, i := range found {
		out[k] = left[i]
	}
	return out
}

func inState(s *timeline.Service, state string) bool {
	if state == "" {
		return true // still being typed
	}
	words := []string{string(s.State)}
	if !s.Deleted.IsZero() {
		words = append(words, "deleted")
	}
	if !s.Coverage.Complete() {
		words = append(words, "blind")
	}
	if risky(s) {
		words = append(words, "risk")
	}
	return slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(w, state) })
}
