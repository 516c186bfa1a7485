package view

import (
	"strings"
	"testing"

	"github.com/kconverge/kconverge/collect"
)

func TestTheEngineSaysWhyThereAreNoSteps(t *testing.T) {
	for controlPlane, want := range map[string]string{
		"":                      "the controllers of this cluster run elsewhere|their steps (queue, tries, conflicts) are not seen|what they write is on the Timeline",
		collect.OwnControlPlane: "no steps yet",
		"of another kind":       "the controllers are of another kind|their steps (queue, tries, conflicts) are not seen|what they write is on the Timeline",
	} {
		if got := strings.Join(noSteps(controlPlane), "|"); got != want {
			t.Errorf("%q: %s", controlPlane, got)
		}
	}
}
