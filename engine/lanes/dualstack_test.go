package lanes_test

import (
	"strings"
	"testing"
	"time"

	"github.com/kconverge/kconverge/engine/lanes"
	"github.com/kconverge/kconverge/engine/lanes/lanestest"
	"github.com/kconverge/kconverge/engine/timeline"
)

func TestAPodWithTwoAddressesIsOneRowAndTwoEndpoints(t *testing.T) {
	one, both := lanestest.Converging(), lanestest.DualStack()
	o := lanes.Options{Cols: 80, Cell: 125 * time.Millisecond, UnfoldPods: true}
	rows := func(s *timeline.Snapshot) (labels []string, wanted lanes.Row) {
		for _, r := range lanes.Build(s, s.Services[0], o).Rows {
			switch r.Kind {
			case lanes.RowWanted:
				wanted = r
			case lanes.RowPod, lanes.RowSteadyPods:
				labels = append(labels, r.Label+" "+r.Right)
			}
		}
		return labels, wanted
	}
	pods1, wanted1 := rows(one)
	pods2, wanted2 := rows(both)
	if strings.Join(pods1, "\n") != strings.Join(pods2, "\n") {
		t.Errorf("the second address changes the pods' rows:\n%s\nwere\n%s", strings.Join(pods2, "\n"), strings.Join(pods1, "\n"))
	}
	// What is twice the number of pods says why.
	if wanted1.Label != "wanted" || wanted1.Right != "5" || wanted2.Label != "wanted v4+v6" || wanted2.Right != "10: 5+5" {
		t.Errorf("wanted is %q %q, and of two families %q %q", wanted1.Label, wanted1.Right, wanted2.Label, wanted2.Right)
	}
	names := map[string]int{}
	for _, p := range both.Services[0].Paths {
		names[lanes.PathName(p)]++
	}
	for name, n := range names {
		if n > 1 {
			t.Errorf("%d paths are called %s", n, name)
		}
	}
}

func TestAShareOfConnectionsIsOfOneFamily(t *testing.T) {
	s := lanestest.DualStack()
	svc := s.Services[0]
	text := lanes.Failing(svc, at(10000))
	if !strings.HasPrefix(text, "2 of 7 new connections over IPv4 from node-3") {
		t.Errorf("both families alike: %q", text)
	}
	// IPv4's stale endpoints go from the rules of node-3.
	p := *svc.Rules.All()[2]
	var kept []timeline.Member
	for _, m := range p.Members {
		if c := m.At(at(10000)); m.Endpoint.IP.Is4() && c.Have && !c.Want {
			m.Changes = append([]timeline.MemberChange{}, m.Changes...)
			for i := range m.Changes {
				m.Changes[i].Have = m.Changes[i].Want
			}
		}
		kept = append(kept, m)
	}
	p.Members = kept
	svc.Rules.All()[2] = &p
	if text := lanes.Failing(svc, at(10000)); !strings.HasPrefix(text, "2 of 7 new connections over IPv6 from node-3") {
		t.Errorf("IPv4 is right, IPv6 is not: %q", text)
	}
	if text := lanes.Failing(lanestest.Converging().Services[0], at(10000)); !strings.HasPrefix(text, "2 of 7 new connections from node-3") {
		t.Errorf("one family: %q", text)
	}
}
