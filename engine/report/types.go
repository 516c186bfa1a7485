package report

import "time"

// Schema names the version of the document.
const Schema = "kconverge.report/v1"

// Report is the kconverge.report/v1 document. All times are RFC 3339 with
// nanoseconds in UTC, all durations milliseconds. A null means "not known" or
// "not yet", never zero.
type Report struct {
	Schema   string    `json:"schema"`
	Source   Source    `json:"source"`
	AsOf     time.Time `json:"as_of"` // the watermark: nothing is claimed beyond it
	Window   Window    `json:"window"`
	Services []Service `json:"services"`
	Findings []Finding `json:"findings"`
	Gaps     []Gap     `json:"gaps"`
	// Faults are those of the lab; left out where there were none.
	Faults []Fault `json:"faults,omitempty"`
}

// Source is what was observed.
type Source struct {
	Kind string `json:"kind"` // cluster, lab, recording
	Name string `json:"name"`
	// ControlPlane says which one a lab ran: "kconverge's own", or Kubernetes' own
	// programs with their versions and where they are.
	ControlPlane string `json:"control_plane,omitempty"`
	// Rules says where the rules are: "kernel (3 netns)", "in memory: …".
	Rules string `json:"rules,omitempty"`
}

// Window is the time the report covers.
type Window struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
}

// Service is one Service.
type Service struct {
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	State     string    `json:"state"` // converged, converging, stalled, or unknown before what it is compared with was listed
	Coverage  Coverage  `json:"coverage"`
	Planes    Planes    `json:"planes"`
	Paths     []Path    `json:"paths"`
	Episodes  []Episode `json:"episodes"`
	// Connections are those of the lab's traffic; left out without any.
	Connections *Connections `json:"connections,omitempty"`
	// Advice and Rollouts are of all that is retained.
	Advice   *Advice    `json:"advice"`
	Rollouts []Together `json:"rollouts"`
}

// Coverage says which nodes the statements rest on. BlindPlanes are the planes
// that are not observed at all, with the reason.
type Coverage struct {
	Expected int      `json:"expected"`
	Seen     int      `json:"seen"`
	Blind    []string `json:"blind"`
	Gap      []string `json:"gap"`
	LeftOut  []string `json:"left_out"`

	BlindPlanes map[string]string `json:"blind_planes,omitempty"`
	// BlindWhy tells of those of Blind whose rules are read but do not tell how
	// the node routes Services, what does.
	BlindWhy map[string]string `json:"blind_why,omitempty"`
}

// Planes are the counts of routable endpoints now. A plane that nothing observes
// is null, and a node whose rules nothing reads is not among Rules: coverage
// names it.
type Planes struct {
	Pods      *Have            `json:"pods"`
	Slices    *Plane           `json:"slices"`
	Endpoints *Plane           `json:"endpoints"`
	Rules     map[string]Plane `json:"rules"`
}

// Have is a plane that has no wanted set.
type Have struct {
	Have int  `json:"have"`
	Gap  bool `json:"gap,omitempty"` // as in Plane
}

// Plane is wanted against had.
type Plane struct {
	Want int `json:"want"`
	Have int `json:"have"`
	// Agree is false when they differ in anything, also with equal counts.
	Agree bool `json:"agree"`
	// Gap: this is what it was before its source lost events or stopped
	// watching.
	Gap bool `json:"gap,omitempty"`
}

// Path is what happened to one endpoint because of one root event.
type Path struct {
	ID        string    `json:"id"`
	Op        string    `json:"op"`
	Cause     string    `json:"cause"`
	By        string    `json:"by,omitempty"`
	Endpoint  Endpoint  `json:"endpoint"`
	Origin    Origin    `json:"origin"`
	Before    Before    `json:"before"`
	After     After     `json:"after"`
	Slice     *Hop      `json:"slice"`
	Endpoints *Hop      `json:"endpoints"`
	Rules     *Rules    `json:"rules"`
	RiskMS    Risk      `json:"risk_ms"`
	Status    string    `json:"status"`
	EndMS     *float64  `json:"end_ms"` // origin to the last arrival, null while open
	End       time.Time `json:"-"`
}

// Endpoint is one backend; the zero endpoint is the Service itself.
type Endpoint struct {
	IP     string `json:"ip"`
	Family string `json:"family"`
	Pod    string `json:"pod"`
	UID    string `json:"uid"`
	Node   string `json:"node"`
}

// Origin is when the path's root event was observed, and what the object said.
type Origin struct {
	At                 time.Time  `json:"at"`
	ClaimedAt          *time.Time `json:"claimed_at"`
	ClaimedPrecisionMS float64    `json:"claimed_precision_ms"`
}

// Before are the moments of the pod's life before the path. Those that Claimed
// names were not observed: they are the object's own word, in whole seconds on
// another clock.
type Before struct {
	Created     *time.Time `json:"created"`
	Scheduled   *time.Time `json:"scheduled"`
	Initialised *time.Time `json:"initialised"`
	Started     *time.Time `json:"started"`
	Ready       *time.Time `json:"ready"`
	Claimed     []string   `json:"claimed"`
	// Probes are those that failed since the pod was ready last, or was created.
	Probes []Probe `json:"probes"`
	// Pulls are the images that were pulled for its containers.
	Pulls []Pull `json:"pulls"`
}

// Pull is an image that was pulled, by the word of a Kubernetes Event: At is a whole second
// on the node's clock, TookMS the kubelet's own measure.
type Pull struct {
	At     time.Time `json:"at"`
	TookMS float64   `json:"took_ms"`
	Init   bool      `json:"init"` // for an init container
}

// Probe is a probe that failed, by the word of a Kubernetes Event: whole seconds
// on the node's clock, and a Count that may be more.
type Probe struct {
	Kind    string    `json:"kind"` // readiness, liveness, startup
	Count   int       `json:"count"`
	First   time.Time `json:"first"`
	Last    time.Time `json:"last"`
	Message string    `json:"message"`
}

// After are the moments of the end of a path's pod, where that is what the path
// is of: the deletion was requested, no container ran any more, the phase was
// final, the endpoint was in no slice, the object was gone. Claimed as in Before.
type After struct {
	Terminating *time.Time `json:"terminating"`
	Stopped     *time.Time `json:"stopped"`
	Terminal    *time.Time `json:"terminal"`
	Unpublished *time.Time `json:"unpublished"`
	Gone        *time.Time `json:"gone"`
	Claimed     []string   `json:"claimed"`
	// NotBefore has those that are only known to lie between it and their time.
	NotBefore map[string]time.Time `json:"not_before,omitempty"`
}

// Hop is the arrival in one plane. LagMS counts from the path's origin.
type Hop struct {
	At        *time.Time `json:"at"`
	NotBefore *time.Time `json:"not_before,omitempty"`
	LagMS     *float64   `json:"lag_ms"`
	ErrorMS   float64    `json:"error_ms"`
	Status    string     `json:"status"`
	Note      string     `json:"note,omitempty"`
}

// NodeHop is the arrival in one node's rules. FromSliceMS counts from the
// slice's arrival.
type NodeHop struct {
	Hop
	FromSliceMS *float64 `json:"from_slice_ms"`
	// OfficialMS is what the node's kube-proxy will have put into its metric
	// kubeproxy_network_programming_duration_seconds for the slice write, null
	// when nothing: OfficialWhy then says why. It counts from OfficialFrom, the
	// slice's trigger time, which is cut to seconds.
	// It is at most that, and at least OfficialAtLeastMS where the arrival is
	// an interval (null for others).
	OfficialMS        *float64   `json:"official_ms"`
	OfficialAtLeastMS *float64   `json:"official_at_least_ms,omitempty"`
	OfficialFrom      *time.Time `json:"official_from"`
	OfficialWhy       string     `json:"official_why,omitempty"`
	Generation        uint32     `json:"generation,omitempty"`
}

// Rules summarises the nodes. A node that has not arrived counts as at least
// its age: AtLeastMS is that age as of the watermark (null before the watermark
// has passed the origin), and a quantile that it affects is null. Of an arrival that
// is an interval (NotBefore) the end counts. P99MS is null
// under 100 nodes.
type Rules struct {
	FirstMS   *float64           `json:"first_ms"`
	P50MS     *float64           `json:"p50_ms"`
	P99MS     *float64           `json:"p99_ms"`
	LastMS    *float64           `json:"last_ms"`
	N         int                `json:"n"`
	AtLeastMS *float64           `json:"at_least_ms"`
	ByNode    map[string]NodeHop `json:"by_node"`
	Missing   []string           `json:"missing"`
}

// Risk is how long new connections could still be sent to an endpoint that had
// been told to stop, or had stopped. Either may be less by up to Width, because
// the last node is only known to have let go in an interval, and is off by up to
// Error, both ways.
type Risk struct {
	FromTermination *float64 `json:"from_termination"`
	FromExit        *float64 `json:"from_exit"`
	Growing         bool     `json:"growing,omitempty"`
	Width           float64  `json:"width,omitempty"`
	Error           float64  `json:"error,omitempty"`
	// WrongPod: for how long nodes routed to the endpoint although its address was
	// given to another pod already; null when never. It grows with Growing, or
	// while the path is open.
	WrongPod *float64 `json:"wrong_pod"`
}

// Episode is a maximal interval with at least one difference.
type Episode struct {
	Start time.Time  `json:"start"`
	End   *time.Time `json:"end"`
	Paths []string   `json:"paths"`
	// Adds and Removes count its paths. Without either the rest is null.
	Adds     int        `json:"adds"`
	Removes  int        `json:"removes"`
	Capacity *Capacity  `json:"capacity"`
	Unrouted *Unrouted  `json:"unrouted"`
	Advice   *Advice    `json:"advice"`
	Together []Together `json:"together,omitempty"`
}

// Finding is something wrong or risky that was recognised. Severity is "error",
// "warning" or "info"; kconverge explain tells what a Code means. Since is null when
// it is not known since when it is so.
type Finding struct {
	Code     string     `json:"code"`
	Severity string     `json:"severity"`
	Object   string     `json:"object"`
	Message  string     `json:"message"`
	Fix      string     `json:"fix"`
	Since    *time.Time `json:"since"`
}

// Gap is an interval in which a source was not watching or lost events.
type Gap struct {
	Source string     `json:"source"`
	From   time.Time  `json:"from"`
	To     *time.Time `json:"to"`
	Why    string     `json:"why"`
}
