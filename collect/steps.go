package collect

import "time"

// OwnControlPlane is the Session.ControlPlane of a lab whose API server and
// controllers are kconverge's: the only one whose controllers' steps are seen.
const OwnControlPlane = "kconverge's own"

// Session heads a stream of events: what is being observed.
type Session struct {
	// Format is that of the recording that the event heads,
	// "kconverge.recording/v1"; empty in a running program and in recordings from
	// before formats had names.
	Format  string `json:"format,omitempty"`
	Kind    string `json:"kind"` // "cluster", "lab", "recording"
	Name    string `json:"name"`
	Version string `json:"version,omitempty"` // of the API server
	Tool    string `json:"tool,omitempty"`    // of kconverge
	// ControlPlane says which one runs, where that is known: OwnControlPlane, or
	// whose and where its programs are.
	ControlPlane string    `json:"controlPlane,omitempty"`
	Rules        string    `json:"rules,omitempty"` // "kernel (3 netns)", "agents", "none"
	Started      time.Time `json:"started"`
	// Namespaces observed; empty means all.
	Namespaces []string `json:"namespaces,omitempty"`
	// Sources that are expected to vouch before anything may be called
	// converged, for instance kube/pods or rules/node-1.
	Needs []SourceID `json:"needs,omitempty"`
	// NodesExpected says that every schedulable, ready Node should have a
	// rules source. False when nothing reads rules (then coverage says blind).
	NodesExpected bool `json:"nodesExpected,omitempty"`
}

// Type implements Payload.
func (*Session) Type() string { return "session" }

// Action is something a person or a script asked for, for instance
// "scale web 4→7". Observed by whoever carried it out.
type Action struct {
	Namespace string `json:"ns,omitempty"`
	Service   string `json:"service,omitempty"` // when it belongs to one
	Text      string `json:"text"`
	By        string `json:"by,omitempty"`
}

// Type implements Payload.
func (*Action) Type() string { return "action" }

// ReconcileStep is one step of the embedded EndpointSlice, Endpoints or
// mirroring controller about one Service.
type ReconcileStep struct {
	Controller string `json:"controller"` // "endpointslice", "endpoints", "mirroring"
	// Step is "queued", "started", "wrote", "conflict", "unchanged",
	// "retry", "dropped".
	Step   string        `json:"step"`
	Queue  int           `json:"queue"` // depth after the step
	Worker int           `json:"worker,omitempty"`
	Took   time.Duration `json:"took,omitempty"`   // of this step: wait in the queue, or the write
	Tries  int           `json:"tries,omitempty"`  // so far for this key
	Detail string        `json:"detail,omitempty"` // what was written, or the error
	Writes int           `json:"writes,omitempty"` // API writes of this sync
}

// Type implements Payload.
func (*ReconcileStep) Type() string { return "reconcile" }

// SyncStep is one step of a node's embedded rule sync.
type SyncStep struct {
	Node string `json:"node"`
	// Step is "received" (a slice or Service changed), "waiting" (for the
	// minimum period), "started", "committed", "failed".
	Step       string        `json:"step"`
	Full       bool          `json:"full,omitempty"`
	Generation uint32        `json:"generation,omitempty"`
	Pending    int           `json:"pending,omitempty"` // Services with changes
	Took       time.Duration `json:"took,omitempty"`
	Detail     string        `json:"detail,omitempty"`
}

// Type implements Payload.
func (*SyncStep) Type() string { return "sync" }

// Advance moves the model's time when nothing else does, so that ages, budgets
// and retention are replayed exactly. Its event's At is the new time.
type Advance struct{}

// Type implements Payload.
func (*Advance) Type() string { return "advance" }
