package view

import (
	"fmt"
	"time"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/engine/lanes"
	"github.com/kconverge/kconverge/engine/timeline"
)

// nodeDetail tells about one node beside its rules, a line each: what it is,
// what its kube-proxy says of itself, and how far its agent's clock is known.
func nodeDetail(n *timeline.Node, now time.Time) []string {
	first := n.Name
	if n.Zone != "" {
		first += "  zone " + n.Zone
	}
	if n.Sync != nil {
		first += "  last: " + lanes.SyncText(n.Sync)
	}
	if len(n.Unknown) > 0 {
		first += fmt.Sprintf("  %s of no Service: %s", lanes.Plural(len(n.Unknown), "rule"), n.Unknown[0])
	}
	out := []string{first}
	if n.Proxy != nil {
		out = append(out, proxyText(n.Proxy, now))
	}
	if n.Agent != nil {
		out = append(out, agentText(n.Agent, n.Clock))
	}
	return out
}

// proxyText is kube-proxy's own account.
func proxyText(p *collect.ProxyState, now time.Time) string {
	t := "kube-proxy"
	if !p.Reachable {
		t += " does not answer"
		if p.Why != "" {
			t += ": " + p.Why
		}
		return t
	}
	for _, s := range []string{p.Version, p.Mode} {
		if s != "" {
			t += " " + s
		}
	}
	switch {
	case p.Healthy == nil:
		t += ", says nothing of its health"
	case *p.Healthy:
		t += ", says it is healthy"
	default:
		t += ", says it is NOT healthy"
	}
	if !p.LastSync.IsZero() {
		// The agent asks with its heartbeats: there may have been another since.
		t += ", last sync told of " + lanes.Duration(max(0, now.Sub(p.LastSync))) + " ago"
	}
	if p.SyncFailures > 0 {
		t += ", " + lanes.Plural(int(p.SyncFailures), "failed sync")
	}
	if n := p.PendingEndpoints + p.PendingServices; n > 0 {
		t += fmt.Sprintf(", %s pending", lanes.Plural(n, "change"))
	}
	if p.ProgrammingCount > 0 {
		// The official metric is of all Services since the start, and leaves
		// out the bad cases.
		mean := time.Duration(p.ProgrammingSeconds / float64(p.ProgrammingCount) * float64(time.Second))
		t += fmt.Sprintf("; official latency: mean %s, n=%d, all Services", lanes.Duration(mean), p.ProgrammingCount)
	}
	return t
}

func agentText(a *collect.AgentState, c collect.ClockBound) string {
	t := "agent"
	if a.Version != "" {
		t += " " + a.Version
	}
	switch c.How {
	case "":
		return t
	case "one clock": // collect.ClockBound.How
		return t + ", on the viewer's own clock"
	}
	t += fmt.Sprintf(", clock %s off, known to ±%s (%s)", lanes.Duration(c.Offset.Abs()), lanes.Duration(c.Error), c.How)
	if c.OneSided {
		t += ", one side only"
	}
	return t
}
