package collect

import "time"

// SourceID names one stream of events, for instance "kube/pods" or
// "rules/node-1". Events of one source are in the order in which the source
// produced them; events of different sources have no mutual order beyond
// resourceVersion (see ResourceVersion) and the viewer's clock.
type SourceID string

// Source identifiers and prefixes used throughout.
const (
	SourcePods           SourceID = "kube/pods"
	SourceServices       SourceID = "kube/services"
	SourceEndpointSlices SourceID = "kube/endpointslices"
	SourceEndpoints      SourceID = "kube/endpoints"
	SourceNodes          SourceID = "kube/nodes"
	SourceDeployments    SourceID = "kube/deployments"
	SourceReplicaSets    SourceID = "kube/replicasets"
	SourceStatefulSets   SourceID = "kube/statefulsets"
	SourceDaemonSets     SourceID = "kube/daemonsets"
	SourceKubeEvents     SourceID = "kube/events"
	SourceReconciler     SourceID = "engine/reconciler"
	SourceClock          SourceID = "clock"
	SourceUser           SourceID = "user"

	// SourceRulesPrefix and SourceRuleSyncPrefix are completed by a node name.
	SourceRulesPrefix    = "rules/"
	SourceRuleSyncPrefix = "engine/rulesync/"
)

// RulesSource is the source of the observed kernel rules of one node.
func RulesSource(node string) SourceID { return SourceID(SourceRulesPrefix + node) }

// RuleSyncSource is the source of the steps of one node's embedded rule sync.
func RuleSyncSource(node string) SourceID { return SourceID(SourceRuleSyncPrefix + node) }

// Op says what happened to the object of an Event.
type Op string

const (
	// OpListed: the object was present when the source listed. It says
	// nothing about when the object came to be so: a baseline, no lag may be
	// computed from it.
	OpListed Op = "listed"
	// OpAdded, OpModified and OpDeleted were delivered by a watch, as they
	// happened. A deletion carries the last known payload.
	OpAdded    Op = "added"
	OpModified Op = "modified"
	OpDeleted  Op = "deleted"
	// OpGone: a list after an interruption lacked an object that was known
	// before. When it went is known only to lie in [NotBefore, At].
	OpGone Op = "gone"
	// OpNone is for payloads that are not about an object's life.
	OpNone Op = ""
)

// ObjectKey names one object. Namespace is empty for cluster-scoped kinds.
type ObjectKey struct {
	Kind      string `json:"kind"`
	Namespace string `json:"ns,omitempty"`
	Name      string `json:"name"`
}

// Event is one observation. It is immutable once emitted: whoever receives it
// may keep it and share its payload between goroutines, and must not write to
// it.
type Event struct {
	// Seq numbers events within one session, from 1, in the order in which
	// the session's owner (engine/live) accepted them. Sources leave it 0.
	Seq uint64
	// At is when the source observed it, on the clock of the machine that
	// emits (for a node's rules: the node's).
	At time.Time
	// NotBefore, when set, says that the change is only known to lie in
	// [NotBefore, At], for instance because it was found by a fresh dump
	// after a gap.
	NotBefore time.Time
	Source    SourceID
	Op        Op
	Object    ObjectKey
	UID       string
	// ResourceVersion orders objects that share one etcd. 0 when unknown.
	ResourceVersion uint64
	Payload         Payload
}
