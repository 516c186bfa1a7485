package timeline

import (
	"net/netip"
	"sort"
	"time"

	"github.com/kconverge/kconverge/collect"
)

// PlaneKind is one of the stages between a pod and the packets.
type PlaneKind string

const (
	PlanePods      PlaneKind = "pods"
	PlaneSlices    PlaneKind = "slices"
	PlaneEndpoints PlaneKind = "endpoints"
	PlaneRules     PlaneKind = "rules"
)

// PlaneID names one plane of a Service. Node is set for rules only.
type PlaneID struct {
	Kind PlaneKind
	Node string
}

// String gives "slices" or "rules@node-1".
func (p PlaneID) String() string {
	if p.Node != "" {
		return string(p.Kind) + "@" + p.Node
	}
	return string(p.Kind)
}

// EndpointID identifies one backend: a pod (by UID) or a hand-made address
// (UID "manual"), at one address. The zero value stands for the Service itself:
// its frontends.
type EndpointID struct {
	UID string
	IP  netip.Addr
}

// ManualUID is the UID of an endpoint that no pod stands behind, and
// UnknownUID of an address found in rules that no slice explains.
const (
	ManualUID  = "manual"
	UnknownUID = "unknown"
)

// Endpoint is an EndpointID with what people call it.
type Endpoint struct {
	EndpointID
	Pod    string
	Node   string
	Family collect.Family
	// Ports are the target ports seen, sorted.
	Ports []int32
}

// State of a Service.
type State string

const (
	Converged  State = "converged"
	Converging State = "converging"
	Stalled    State = "stalled"
	// Unknown: nothing can be compared yet, because a first list is still to come.
	Unknown State = "unknown"
)

// Op is what a path did.
type Op string

const (
	OpAdd     Op = "add"     // the endpoint became routable
	OpRemove  Op = "remove"  // the endpoint stopped being routable
	OpChange  Op = "change"  // it changed without either, or left the slices after having stopped being routable
	OpService Op = "service" // the Service's frontends changed
)

// Cause is why a path's root event moved what was wanted.
type Cause string

const (
	CausePodReady        Cause = "pod-ready"
	CausePodUnready      Cause = "pod-unready"
	CausePodTerminating  Cause = "pod-terminating"
	CausePodTerminal     Cause = "pod-terminal"
	CausePodGone         Cause = "pod-gone"
	CauseAddressChanged  Cause = "address-changed"
	CauseRelabelled      Cause = "relabelled"
	CauseSelectorChanged Cause = "selector-changed"
	CausePortsChanged    Cause = "ports-changed"
	CausePolicyChanged   Cause = "policy-changed"
	CausePublishNotReady Cause = "publish-not-ready-changed"
	CauseAffinityChanged Cause = "affinity-changed"
	CauseHintsChanged    Cause = "hints-changed"
	CauseZoneChanged     Cause = "zone-changed" // of the node that routes
	CauseServiceCreated  Cause = "service-created"
	CauseServiceDeleted  Cause = "service-deleted"
	CauseSliceEdited     Cause = "slice-edited"
	CauseEndpointsEdited Cause = "endpoints-edited" // made by hand, and mirrored
	CauseFallback        Cause = "fallback"
	CauseNodeAdded       Cause = "node-added"
	CauseNodeGone        Cause = "node-gone"
	CausePodChanged      Cause = "pod-changed" // any other fact of the pod
	CauseServiceChanged  Cause = "service-changed"
)

// Status of a path or of one hop.
type Status string

const (
	StatusOpen          Status = "open"
	StatusArrived       Status = "arrived"
	StatusSuperseded    Status = "superseded"
	StatusHandedOver    Status = "handed-over"
	StatusAlreadyRouted Status = "already-routed"
)

// Moment is an observed time beside what the object itself claimed (1 s
// precision, another clock). They are never mixed.
type Moment struct {
	At time.Time
	// NotBefore, when set, says that it was only observed to lie in
	// [NotBefore, At], for instance because a list after an interruption
	// found it.
	NotBefore time.Time
	Claimed   time.Time
	// ClaimedPrecision is one second for everything the API writes.
	ClaimedPrecision time.Duration
}

// Hop is one plane's part of a path: the step in its wanted set and the arrival
// in its had.
type Hop struct {
	Plane PlaneID
	// Step is when the plane's wanted moved for the endpoint.
	Step time.Time
	// At is the arrival; zero while open. NotBefore bounds it from below when
	// it is only known to lie in [NotBefore, At].
	At        time.Time
	NotBefore time.Time
	// Lag is At minus the path's origin; FromStep is At minus Step. Both may
	// be negative (two watches have no mutual order) and are meaningless
	// while open.
	Lag, FromStep time.Duration
	// Error is how far Lag may be off, either way.
	Error  time.Duration
	Status Status
	// Note is what the plane had on arrival: "web-bx4wq rev 1841",
	// "generation 77".
	Note string
	// Generation is the rule generation of the arrival.
	Generation uint32
	// Official is what the node's kube-proxy will have put into its metric
	// kubeproxy_network_programming_duration_seconds for the slice write that
	// this arrival of rules is of: on the node's clock and since the slice's
	// Trigger time, of whole seconds. One write of a slice gives one number
	// for each node, however many endpoints it moves. Like Lag it is the most
	// that it can be, less by up to Width. Nil when there is none; OfficialWhy
	// then says why.
	Official    *time.Duration
	OfficialWhy string
	Trigger     time.Time
}

// Width is how long the interval is in which the hop arrived; 0 when the moment is
// known, to Error.
func (h *Hop) Width() time.Duration {
	if h.NotBefore.IsZero() || !h.NotBefore.Before(h.At) {
		return 0
	}
	return h.At.Sub(h.NotBefore)
}

// Path is what happened to one endpoint, across the planes, because of one root
// event.
type Path struct {
	// ID is unique within the session and stable across replays.
	ID        string
	Namespace string
	Service   string
	Op        Op
	Cause     Cause
	// By tells who or what was behind it where that is known: "scale",
	// "rollout to 7d9c", "eviction".
	By       string
	Endpoint Endpoint
	Origin   Moment
	Before   Before
	After    After
	// Slice and Endpoints are nil when the path has no step there.
	Slice     *Hop
	Endpoints *Hop
	// Rules has one hop for each node that had a step, sorted by node.
	Rules []Hop
	Risk  Risk
	// Status: open while any hop other than Endpoints is open.
	Status Status

	// end is what End tells of a path of a Snapshot; told that it does.
	end  time.Time
	told bool
}

// End is the latest arrival over slices and rules, zero when none arrived.
func (p *Path) End() time.Time {
	if p.told {
		return p.end
	}
	var end time.Time
	if p.Slice != nil {
		end = p.Slice.At
	}
	for i := range p.Rules {
		if at := p.Rules[i].At; at.After(end) {
			end = at
		}
	}
	return end
}

// Missing are the nodes whose rules have not arrived.
func (p *Path) Missing() []string {
	var out []string
	for _, h := range p.Rules {
		if h.Status == StatusOpen {
			out = append(out, h.Plane.Node)
		}
	}
	return out
}

// Difference is one disagreement between had and wanted.
type Difference struct {
	Plane    PlaneID
	Endpoint Endpoint
	// Kind is "missing" (wanted, not had), "stale" (had, was wanted before),
	// "unexpected" (had, never wanted), "changed" (both, differently).
	Kind  string
	Since time.Time
	// Stopped is since when nothing can answer behind a stale endpoint (its
	// pod's containers ended, or the pod is gone); zero otherwise.
	Stopped time.Time
}

// Knowledge is how well a plane is seen at some time.
type Knowledge string

const (
	Known Knowledge = "known"
	Blind Knowledge = "blind" // nothing observes it
	InGap Knowledge = "gap"   // its source lost events or was not watching
)

// PlaneChange is the state of a plane from At until the next change.
type PlaneChange struct {
	At        time.Time
	Knowledge Knowledge
	// Baseline: this is what a first list, a relist or a new agent brought;
	// it may have been so for long.
	Baseline bool
	// Want and Have count routable endpoints.
	Want, Have int
	// Missing, Stale, Unexpected and Changed count differences; Stopped
	// counts those of Stale behind which nothing answers.
	Missing, Stale, Unexpected, Changed, Stopped int
	// Note is the content's name: "web-bx4wq rev 1841", "generation 77".
	Note string
}

// Agrees reports that the plane was as wanted.
func (c PlaneChange) Agrees() bool {
	return c.Missing == 0 && c.Stale == 0 && c.Unexpected == 0 && c.Changed == 0
}

// MemberChange is what a plane had and wanted of one endpoint from At until the
// next change.
type MemberChange struct {
	At         time.Time
	Want, Have bool // routable
	// Agrees is false when they differ in anything (a port, a condition).
	Agrees bool
	// Unexpected: it is had and never was wanted. Stopped: it is stale, and
	// nothing answers behind it.
	Unexpected, Stopped bool
}

// Member is the history of one endpoint in one plane.
type Member struct {
	Endpoint Endpoint
	Changes  []MemberChange
}

// At returns the state at t; the zero MemberChange before the first change.
func (m *Member) At(t time.Time) MemberChange {
	if n := changesBy(m.Changes, t); n > 0 {
		return m.Changes[n-1]
	}
	return MemberChange{}
}

// changesBy is how many of the changes are not after t. Most ask for a moment near the
// end.
func changesBy(changes []MemberChange, t time.Time) int {
	n := len(changes)
	if n == 0 || !changes[n-1].At.After(t) {
		return n
	}
	return sort.Search(n, func(i int) bool { return changes[i].At.After(t) })
}

// Plane is the history of one plane of a Service.
type Plane struct {
	ID      PlaneID
	Changes []PlaneChange // by time
	Members []Member      // by endpoint: IP, then UID
	// Frontends is the history of the Service's own frontends in a node's rules:
	// Want and Have tell whether there should be and are any.
	Frontends []MemberChange
	// Arrivals are the hops that arrived here, by time: lags to write on the
	// lane.
	Arrivals []Arrival
	// Past is what is claimed of the time before Changes; nil when nothing is.
	Past *Past
	// Ports are what a node's rules do for the Service now, sorted; nil for other
	// planes. Not to be changed.
	Ports []collect.RulePort

	// last is when a member changed last and odd are the places of those that differ
	// since then, once told is set: for who asks about now.
	last time.Time
	odd  []int32
	told bool
}

// tell makes odd.
func (p *Plane) tell() {
	p.told = true
	for i := range p.Members {
		changes := p.Members[i].Changes
		c := &changes[len(changes)-1]
		if c.At.After(p.last) {
			p.last = c.At
		}
		if !c.Agrees {
			p.odd = append(p.odd, int32(i))
		}
	}
}

// At returns the state of the plane at t; ok is false before its first change.
func (p *Plane) At(t time.Time) (c PlaneChange, ok bool) {
	i := sort.Search(len(p.Changes), func(i int) bool { return p.Changes[i].At.After(t) })
	if i == 0 {
		return c, false
	}
	return p.Changes[i-1], true
}

// Arrival is a lag to write on a lane: at At the plane caught up with the
// steps of one or more paths, the slowest of which took Lag.
type Arrival struct {
	At    time.Time
	Lag   time.Duration
	Error time.Duration
	Paths []string
	// Settled: the plane agreed with everything wanted from here on.
	Settled bool
}
