package timeline

import (
	"net/netip"
	"slices"
	"time"

	"github.com/kconverge/kconverge/collect"
)

// ConnectionCount is what became of the connections that a node opened to one port of
// a Service and that ended in (From, To].
type ConnectionCount struct {
	From, To   time.Time
	Node       string
	Address    netip.AddrPort
	OK, Failed int
	Skipped    int // not opened, because too many were under way
	Slowest    time.Duration
	Pods       []string // UIDs of those that answered
}

// ConnectionFailure is one connection that failed: opened at Began, given up at Ended.
type ConnectionFailure struct {
	Began, Ended time.Time
	Node         string
	Address      netip.AddrPort
	Result       string // collect.ConnectionRefused and so on
}

// onConnections takes what became of a node's connections.
func (ch *change) onConnections() {
	p := ch.e.Payload.(*collect.Connections)
	s := ch.m.ns(ch.e.Object.Namespace).services[ch.e.Object.Name]
	if s == nil {
		return
	}
	c := ConnectionCount{From: p.From.Round(0).UTC(), To: ch.at, Node: p.Node, Address: p.Address, OK: p.OK, Failed: p.Failed, Skipped: p.Skipped, Slowest: p.Slowest}
	for _, a := range p.Answered {
		c.Pods = append(c.Pods, a.UID)
	}
	s.conns.insert(c, func(a, b ConnectionCount) bool { return a.To.Before(b.To) })
	s.dirty = true
}

// onConnectionFailed takes one connection that failed.
func (ch *change) onConnectionFailed() {
	p := ch.e.Payload.(*collect.ConnectionFailed)
	s := ch.m.ns(ch.e.Object.Namespace).services[ch.e.Object.Name]
	if s == nil {
		return
	}
	f := ConnectionFailure{Began: p.Began.Round(0).UTC(), Ended: ch.at, Node: p.Node, Address: p.Address, Result: p.Result}
	s.failures.insert(f, func(a, b ConnectionFailure) bool { return a.Began.Before(b.Began) })
	s.dirty = true
}

// onNarration takes what a script tells.
func (ch *change) onNarration() {
	n := ch.e.Payload.(*collect.Narration)
	if n.Ended {
		ch.m.narration = nil
	} else {
		ch.m.narration = n
	}
	if n.Text != "" && !n.Waiting {
		ch.m.mark(Mark{At: ch.at, Kind: "narration", Text: n.Text, Step: n})
	}
}

// Kinds of reasons why a connection failed.
const (
	// FailureRisk: the node could send it to a pod that was terminating or had
	// stopped: it lies in the risk window of that pod's removal.
	FailureRisk = "risk"
	// FailureUnready: the node could send it to a pod that was not ready.
	FailureUnready = "unready"
	// FailureNoEndpoints: the node had nothing to send it to, and rejects it then.
	FailureNoEndpoints = "no endpoints"
	// FailureSilent: the node could send it to a pod on a node that may have been dead:
	// nothing had been heard of that one when it was found to be silent.
	FailureSilent = "silent node"
	// Unexplained: by all that is known it should have been answered.
	Unexplained = "unexplained"
)

// Explanation is why a connection failed.
type Explanation struct {
	Kind string
	// Pods are the names of those that it could have been sent to in vain.
	Pods []string
}

// failureSlack is how far the moments of a connection, of a pod and of a node's rules
// may be off against each other in one process: the disorder of two watches, which the
// reordering window bounds, and the reading of rules.
const failureSlack = 50 * time.Millisecond

// ExplainFailure says why a connection to the Service failed, from what the node's rules
// had and what the pods behind and their nodes were while it was under way. nodes are
// those of the same snapshot.
func (s *Service) ExplainFailure(f *ConnectionFailure, nodes []Node) Explanation {
	slack := failureSlack
	if i := slices.IndexFunc(nodes, func(n Node) bool { return n.Name == f.Node }); i >= 0 {
		slack += nodes[i].Clock.Error // by which the times of its rules may be off
	}
	from, to := f.Began.Add(-slack), f.Ended.Add(slack)
	p := s.Rules.Of(f.Node)
	family := collect.FamilyOf(f.Address.Addr())
	routed := routedSpans{}
	var stopping, unready []string
	var able []*Endpoint
	for i := 0; p != nil && i < len(p.Members); i++ {
		m := &p.Members[i]
		if m.Endpoint.IP.IsValid() && m.Endpoint.Family != family {
			continue
		}
		for _, x := range held(m, from, to) {
			routed = append(routed, x)
			switch s.worst(&m.Endpoint, x) {
			case PodTerminating, PodStopped, PodGone:
				stopping = also(stopping, m.Endpoint.Pod)
			case PodUnready, PodStarting, PodPending:
				unready = also(unready, m.Endpoint.Pod)
			default:
				able = append(able, &m.Endpoint)
			}
		}
	}
	switch {
	case len(stopping) > 0:
		return Explanation{FailureRisk, stopping}
	case !routed.cover(from, to):
		return Explanation{Kind: FailureNoEndpoints}
	case len(unready) > 0:
		return Explanation{FailureUnready, unready}
	}
	if pods := s.onSilent(f, able, nodes); len(pods) > 0 {
		return Explanation{FailureSilent, pods}
	}
	return Explanation{Kind: Unexplained}
}

// also adds a name that is not there yet.
func also(names []string, name string) []string {
	if slices.Contains(names, name) {
		return names
	}
	return append(names, name)
}

// onSilent are the pods, of those that a failed connection may have been sent to, on
// nodes that may have been dead then. A dead node refuses nothing and resets nothing,
// and one that answered somebody later was alive.
func (s *Service) onSilent(f *ConnectionFailure, able []*Endpoint, nodes []Node) (pods []string) {
	if f.Result != collect.ConnectionTimedOut && f.Result != collect.ConnectionUnreachable {
		return nil
	}
	for _, e := range able {
		i := slices.IndexFunc(nodes, func(n Node) bool { return n.Name == e.Node && e.Node != "" })
		if i < 0 {
			continue
		}
		for _, x := range nodes[i].Silences {
			ended := x.To.IsZero() || f.Began.Before(x.To)
			if ended && f.Ended.After(x.From) && f.Ended.After(s.answered(nodes[i].Name, x.To)) {
				pods = also(pods, e.Pod)
				break
			}
		}
	}
	return pods
}

// answered is when a pod on the node last answered a connection before t, at the
// least; a zero t is no limit.
func (s *Service) answered(node string, t time.Time) (last time.Time) {
	on := map[string]bool{}
	for i := range s.Pods {
		if s.Pods[i].Node == node {
			on[s.Pods[i].UID] = true
		}
	}
	for i := range s.Connections {
		c := &s.Connections[i]
		if c.From.After(last) && (t.IsZero() || c.From.Before(t)) && slices.ContainsFunc(c.Pods, func(uid string) bool { return on[uid] }) {
			last = c.From
		}
	}
	return last
}

// routedSpan is [from, to).
type routedSpan struct{ from, to time.Time }

type routedSpans []routedSpan

// cover reports that at every moment of [from, to] one of the stretches holds.
func (l routedSpans) cover(from, to time.Time) bool {
	at := from
	for moved := true; moved && at.Before(to); {
		moved = false
		for _, x := range l {
			if !x.from.After(at) && x.to.After(at) {
				at, moved = x.to, true
			}
		}
	}
	return !at.Before(to)
}

// held are the parts of [from, to] in which a plane had the endpoint.
func held(m *Member, from, to time.Time) (out []routedSpan) {
	for i, c := range m.Changes {
		end := to
		if i+1 < len(m.Changes) && m.Changes[i+1].At.Before(to) {
			end = m.Changes[i+1].At
		}
		if c.Have && end.After(from) && c.At.Before(to) {
			out = append(out, routedSpan{laterOf(c.At, from), end})
		}
	}
	return out
}

func laterOf(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// worst is the phase furthest from ready that the endpoint's pod had within a stretch;
// "" for one that no pod stands behind.
func (s *Service) worst(e *Endpoint, x routedSpan) PodPhase {
	worst := PodPhase("")
	rank := func(p PodPhase) int {
		switch p {
		case PodReady:
			return 1
		case PodUnready, PodStarting, PodPending:
			return 2
		case PodTerminating, PodStopped, PodGone:
			return 3
		}
		return 0
	}
	for i := range s.Pods {
		if s.Pods[i].UID != e.UID {
			continue
		}
		changes := s.Pods[i].Changes
		for k, c := range changes {
			ends := k+1 < len(changes) && !changes[k+1].At.After(x.from)
			if ends || !c.At.Before(x.to) {
				continue
			}
			phase := c.Phase
			if c.Ended {
				phase = PodStopped
			}
			if rank(phase) > rank(worst) {
				worst = phase
			}
		}
	}
	return worst
}
