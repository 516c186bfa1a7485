package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/engine/timeline"
)

// Connections is what became of the connections that the lab's traffic opened to a
// Service, over all that is retained.
type Connections struct {
	OK     int `json:"ok"`
	Failed int `json:"failed"`
	// Skipped were not opened, because too many were under way.
	Skipped int `json:"skipped,omitempty"`
	// SlowestMS is the longest time to an answer.
	SlowestMS float64 `json:"slowest_ms"`
	// Pods is by how many pods they were answered.
	Pods int `json:"pods"`
	// Why counts the failures by their reason: "risk" (in the risk window of a pod that
	// went), "unready", "no endpoints", "silent node", "unexplained".
	Why      map[string]int      `json:"why,omitempty"`
	Failures []ConnectionFailure `json:"failures"`
}

// ConnectionFailure is one connection that failed.
type ConnectionFailure struct {
	Node   string    `json:"node"`
	Began  time.Time `json:"began"`
	TookMS float64   `json:"took_ms"`
	Result string    `json:"result"` // refused, timed out, reset, unreachable
	// Address is where it went: a ClusterIP and port, or the node's own and a NodePort.
	Address string `json:"address"`
	Why     string `json:"why"`
	// Pods are those that it could have been sent to in vain.
	Pods []string `json:"pods,omitempty"`
}

// maxFailures bounds the failures that are listed one by one; all are counted.
const maxFailures = 1000

// connections counts those that touches says were under way in the time asked for.
func connections(svc *timeline.Service, nodes []timeline.Node, touches func(from, to time.Time) bool) *Connections {
	if len(svc.Connections) == 0 && len(svc.Failures) == 0 {
		return nil
	}
	out := &Connections{Why: map[string]int{}, Failures: []ConnectionFailure{}}
	pods := map[string]bool{}
	for i := range svc.Connections {
		c := &svc.Connections[i]
		if !touches(c.From, c.To) {
			continue
		}
		out.OK += c.OK
		out.Skipped += c.Skipped
		out.SlowestMS = max(out.SlowestMS, ms(c.Slowest))
		for _, uid := range c.Pods {
			pods[uid] = true
		}
	}
	out.Pods = len(pods)
	for i := range svc.Failures {
		f := &svc.Failures[i]
		if !touches(f.Began, f.Ended) {
			continue
		}
		why := svc.ExplainFailure(f, nodes)
		out.Failed++
		out.Why[why.Kind]++
		if len(out.Failures) < maxFailures {
			out.Failures = append(out.Failures, ConnectionFailure{
				Node: f.Node, Began: f.Began.UTC(), TookMS: ms(f.Ended.Sub(f.Began)), Result: f.Result, Address: f.Address.String(), Why: why.Kind, Pods: why.Pods,
			})
		}
	}
	return out
}

// whyText says what the reasons mean.
var whyText = map[string]string{
	timeline.FailureRisk:        "in the risk window of a pod that went",
	timeline.FailureUnready:     "to a pod that was not ready",
	timeline.FailureNoEndpoints: "while the node had no endpoint",
	timeline.FailureSilent:      "to a pod on a node that may have been dead",
	timeline.Unexplained:        "unexplained",
}

// connections prints what became of them.
func (p *printer) connections(c *Connections) {
	if c == nil {
		return
	}
	text := fmt.Sprintf("  connections  %d ok, %d failed", c.OK, c.Failed)
	var whys []string
	for _, kind := range slices.Sorted(maps.Keys(c.Why)) {
		whys = append(whys, fmt.Sprintf("%d %s", c.Why[kind], whyText[kind]))
	}
	if len(whys) > 0 {
		text += ": " + strings.Join(whys, ", ")
	}
	p.line("%s", collect.Plain(text))
}
