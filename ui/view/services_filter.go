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
	var words []string
	left := all
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
		left = slices.DeleteFunc(slices.Clone(left), func(s *timeline.Service) bool { return fits(s) == not })
	}
	if len(words) == 0 {
		return left
	}
	names := make([]string, len(left))
	for i, s := range left {
		names[i] = key(s)
	}
	var out []*timeline.Service
	for _, i := range Match(strings.Join(words, " "), names) {
		out = append(out, left[i])
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
