package timeline

import (
	"net/netip"
	"time"

	"github.com/kconverge/kconverge/collect"
)

// PodPhase is a stretch of a pod's life as its lane shows it.
type PodPhase string

const (
	PodPending     PodPhase = "pending"     // no node or containers not started
	PodStarting    PodPhase = "starting"    // containers run, not ready
	PodReady       PodPhase = "ready"       // ready
	PodUnready     PodPhase = "unready"     // was ready before
	PodTerminating PodPhase = "terminating" // deletion requested, containers may run
	PodStopped     PodPhase = "stopped"     // containers ended, or terminal phase
	PodGone        PodPhase = "gone"
	PodUnselected  PodPhase = "unselected" // exists, no longer selected
)

// PodChange is one stretch, from At until the next. Claimed times are hollow:
// known from the object's own words (1 s), not observed.
type PodChange struct {
	At      time.Time
	Phase   PodPhase
	Claimed bool
	// Ended: nothing of it can answer, whatever the phase.
	Ended bool
}

// PodTrack is the life of one pod that a Service selects or has selected.
type PodTrack struct {
	Name, UID, Node string
	IPs             []netip.Addr
	Owner           string // "ReplicaSet/web-7d9c"
	// Revision names the template it was made from: its pod-template-hash, or
	// controller-revision-hash; empty without one.
	Revision string
	Changes  []PodChange
}

// At returns the phase at t; ok is false before the first change.
func (p *PodTrack) At(t time.Time) (c PodChange, ok bool) {
	return stepAt(p.Changes, t, func(c *PodChange) time.Time { return c.At })
}

// Coverage says which nodes a statement rests on.
type Coverage struct {
	// Expected are the nodes that should have rules; Seen those whose rules
	// are known now; Blind those nothing observes; Gap those whose source is
	// in a gap; LeftOut those that are gone or not ready, by name.
	Expected, Seen, Blind, Gap, LeftOut []string
	// BlindWhy tells of those of Blind whose rules are read but do not tell
	// how the node routes Services, what does.
	BlindWhy map[string]string
	// BlindPlanes are the planes other than rules that are not observed, for
	// instance when listing them is forbidden, with the reason.
	BlindPlanes map[PlaneID]string
}

// Complete reports that every expected node and plane is seen.
func (c *Coverage) Complete() bool {
	return len(c.Blind) == 0 && len(c.Gap) == 0 && len(c.BlindPlanes) == 0
}

// Episode is a maximal interval with at least one difference.
type Episode struct {
	N     int // from 1
	Start time.Time
	End   time.Time // zero while open
	Paths []string
	// Adds and Removes count its paths.
	Adds, Removes int
}

// Count is one value of a step function over time.
type Count struct {
	At time.Time
	N  int
}

// Slice is one EndpointSlice of a Service now.
type Slice struct {
	Name            string
	ResourceVersion uint64
	Family          collect.Family
	Endpoints       int
}

// Workload is the settledness of one owner of a Service's pods.
type Workload struct {
	Kind, Name      string
	Replicas        int32
	Settled         bool
	ResourceVersion uint64
	// Why it is not settled, for people.
	Why string
	// Ready and Available are how many of its pods are, MinReady is for how long one
	// must have been ready to count as available.
	Ready, Available int32
	MinReady         time.Duration
}

// Service is everything known about one Service.
type Service struct {
	Namespace, Name, UID string
	Spec                 *collect.Service // the latest
	Deleted              time.Time        // zero while it exists
	// RoutedByProxy is false for headless, ExternalName and foreign-proxy
	// Services: they get no rules, WhyNot says why.
	RoutedByProxy bool
	WhyNot        string

	State State
	// Since is the start of the oldest difference of a plane that counts.
	Since       time.Time
	Differences []Difference // oldest first
	Coverage    Coverage
	Workloads   []Workload

	// Wanted counts the endpoints that should be routable by the pods' and
	// the Service's word, whatever the planes did.
	Wanted    []Count
	Pods      []PodTrack // by first change, then name
	Slices    *Plane
	Endpoints *Plane
	Rules     NodePlanes
	SliceList []Slice
	Paths     []*Path   // by origin, then ID
	Episodes  []Episode // by start
	Marks     []Mark    // those of the Service
	Facts     Facts
	// Connections are those that the lab's traffic opened, by their end, and Failures
	// each of those that failed, by its beginning.
	Connections []ConnectionCount
	Failures    []ConnectionFailure

	// What At needs beside these.
	specs   []specChange
	dropped []droppedPlane
	hist    *history
}

// Plane returns the plane with the id, or nil.
func (s *Service) Plane(id PlaneID) *Plane {
	switch id.Kind {
	case PlaneSlices:
		return s.Slices
	case PlaneEndpoints:
		return s.Endpoints
	case PlaneRules:
		return s.Rules.Of(id.Node)
	}
	return nil
}

// Path returns the path with the id, or nil.
func (s *Service) Path(id string) *Path {
	for _, p := range s.Paths {
		if p.ID == id {
			return p
		}
	}
	return nil
}

// Mark is a point on the axis that is not a convergence step: an action, a step
// of the reconciler or of a node's sync, a Kubernetes Event.
type Mark struct {
	At time.Time
	// Kind is "action", "reconcile", "sync", "event", "fault".
	Kind string
	Node string
	Text string
	// Step is the raw payload, for details.
	Step collect.Payload
}

// Node is one cluster node.
type Node struct {
	Name, Zone string
	Ready      bool
	Exists     bool
	// Rules tells how its rules are seen.
	Rules Knowledge
	// Generation is the last rule generation seen, Vouched until when the
	// node's source vouches.
	Generation uint32
	Vouched    time.Time
	// Sync is the last step of its embedded rule sync, nil without one.
	Sync *collect.SyncStep
	// Unknown are rules that could not be tied to a Service.
	Unknown []string
	// UnknownSince is when the last of the Services in Unknown that do not exist was
	// first heard of; zero without any.
	UnknownSince time.Time
	// Agent is what the node's agent says about itself, Proxy what the node's
	// kube-proxy says at its metrics and health ports; nil where nobody asked.
	// Clock is how the agent's times were brought to the viewer's clock.
	Agent *collect.AgentState
	Proxy *collect.ProxyState
	Clock collect.ClockBound
	// ReadySince is since when it is ready, or is not, by its own word.
	ReadySince time.Time
	// SyncFailed is when a sync of its rules was last told to have failed.
	SyncFailed time.Time
	// Silences are when nothing was heard of its kubelet, oldest first.
	Silences []Silence
}

// Silence is a time at whose end, or before it, a node was found to be silent: From its
// kubelet's last word, by its own clock, until it was heard of again; To is zero until
// then. It was alive for some of it: the last word comes every 5 minutes, and the Leases
// that are renewed more often are not watched.
type Silence struct{ From, To time.Time }

// Gap is an interval in which a source was not watching or lost events.
type Gap struct {
	Source   collect.SourceID
	From, To time.Time // zero To: still open
	Why      string
}

// SourceStatus is the state of one source.
type SourceStatus struct {
	ID      collect.SourceID
	State   collect.SourceStateName
	Detail  string
	Vouched time.Time
	Needed  bool // its word is needed for the watermark
}

// Snapshot is everything known at one moment. It is immutable.
type Snapshot struct {
	Session collect.Session
	// Seq is the last event's; Now the latest time seen.
	Seq uint64
	Now time.Time
	// Watermark is the latest time that every needed source has vouched for;
	// zero before all have. Beyond it everything is provisional.
	Watermark time.Time
	// First is the time of the first event.
	First    time.Time
	Services []*Service // by namespace, name
	Nodes    []Node     // by name
	Sources  []SourceStatus
	Gaps     []Gap
	Marks    []Mark // those of no Service
	// Faults are those of the lab, by their beginning. Not to be changed.
	Faults []Fault
	// Narration is what a script tells now, nil when none does. Not to be changed.
	Narration *collect.Narration
	// Reconciler is the last step of the embedded reconciler, nil without.
	Reconciler *collect.ReconcileStep
	// Controllers is how the embedded controllers are set, nil without or when they
	// have not said so. Not to be changed.
	Controllers *collect.ControllerState
	// Work is what each embedded controller has done, by name. Not to be changed.
	Work []ControllerWork
	// Dropped counts events lost between sources and the model.
	Dropped int
	// MaxInversion is the largest disorder seen between two watches.
	MaxInversion time.Duration
	// Workloads are all owners seen, keyed "Kind/namespace/name".
	Workloads map[string]Workload
	// MaxResourceVersion is the highest seen.
	MaxResourceVersion uint64
	// Budgets are the ages from which on differences count as stalled.
	Budgets Budgets
	// Unselected are the pods that no Service selects, by namespace, each list by
	// name. Not to be changed.
	Unselected map[string][]PodFacts
}

// Service finds a Service, or nil.
func (s *Snapshot) Service(namespace, name string) *Service {
	for _, x := range s.Services {
		if x.Namespace == namespace && x.Name == name {
			return x
		}
	}
	return nil
}
