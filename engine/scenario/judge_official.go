package scenario

import (
	"fmt"

	"github.com/kconverge/kconverge/engine/timeline"
)

// OfficialCheck counts arrivals in nodes' rules by what the node's kube-proxy put into
// the official metric, kubeproxy_network_programming_duration_seconds, for them.
type OfficialCheck struct {
	Of   PathFilter `yaml:"of"`
	Node string     `yaml:"node"` // a node, or all of them when empty
	// Known is how many have a number, Missing how many have none.
	Known   *Count `yaml:"known"`
	Missing *Count `yaml:"missing"`
}

func judgeOfficial(s *timeline.Service, ct *court) (string, bool) {
	want := ct.check.Official
	known, missing := 0, 0
	why := ""
	for _, p := range ct.paths(s, &want.Of) {
		for i := range p.Rules {
			h := &p.Rules[i]
			switch {
			case h.Status != timeline.StatusArrived || want.Node != "" && h.Plane.Node != want.Node:
			case h.Official != nil:
				known++
			default:
				missing++
				why = h.OfficialWhy
			}
		}
	}
	text, ok := all(counted("known", want.Known, known), counted("missing", want.Missing, missing))
	if why != "" {
		text += fmt.Sprintf(" (%s)", why)
	}
	return text, ok
}
