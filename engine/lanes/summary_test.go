package lanes_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/kconverge/kconverge/engine/lanes"
	"github.com/kconverge/kconverge/engine/lanes/lanestest"
	"github.com/kconverge/kconverge/engine/timeline"
)

func TestSummaryNamesTheSlowestChangeAndItsHop(t *testing.T) {
	for _, c := range []struct {
		name string
		s    *timeline.Snapshot
		want []string
	}{
		{"converging", lanestest.Converging(), []string{
			"5 changes of 1 Service in 3.9 min, 2 of them not everywhere yet.",
			"Slowest: + web-7d9c4b-x7k2p of default/web (pod ready), 2.92 s to node-3; longest hop: rules, 3 nodes, 2.91 s.",
		}},
		{"converged", lanestest.Converged(), []string{"No change in 3.7 min."}},
		{"nothing seen", nil, nil},
	} {
		if got := lanes.Summary(c.s); !slices.Equal(got, c.want) {
			t.Errorf("%s:\n%s\nwant\n%s", c.name, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
	}
}
