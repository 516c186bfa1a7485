package collect

import (
	"net/netip"
	"time"
)

// Payload is the facts of one Event. The set of types is closed; the codec
// lists them (payloadTypes).
type Payload interface {
	// Type is the name of the payload on the wire, for instance "pod".
	Type() string
}

// Protocol is a Service port's protocol as Kubernetes writes it.
type Protocol string

const (
	TCP  Protocol = "TCP"
	UDP  Protocol = "UDP"
	SCTP Protocol = "SCTP"
)

// Family is an IP family as Kubernetes writes it.
type Family string

const (
	IPv4 Family = "IPv4"
	IPv6 Family = "IPv6"
)

// FamilyOf tells the family of an address; an IPv4-mapped IPv6 address counts
// as IPv4.
func FamilyOf(a netip.Addr) Family {
	if a.Unmap().Is4() {
		return IPv4
	}
	return IPv6
}

// Condition is one status condition: what it says, and since when by the
// writer's own clock (1 s precision, claimed, never observed).
type Condition struct {
	Status bool      `json:"status"`
	Since  time.Time `json:"since,omitzero"`
	Reason string    `json:"reason,omitempty"`
}

// Owner is the controller of an object.
type Owner struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
	UID  string `json:"uid"`
}

// NamedPort is a container port with a name, which a Service can target.
type NamedPort struct {
	Name     string   `json:"name"`
	Port     int32    `json:"port"`
	Protocol Protocol `json:"proto"`
}

// Pod is what a Pod says about being an endpoint.
type Pod struct {
	Labels map[string]string `json:"labels,omitempty"`
	Node   string            `json:"node,omitempty"`
	// IPs are status.podIPs, in order.
	IPs         []netip.Addr `json:"ips,omitempty"`
	Phase       string       `json:"phase,omitempty"`
	HostNetwork bool         `json:"hostNetwork,omitempty"`
	Ports       []NamedPort  `json:"ports,omitempty"`
	Owner       *Owner       `json:"owner,omitempty"`

	Created time.Time `json:"created,omitzero"`
	// Scheduled, Initialized, ContainersReady and Ready are the conditions of
	// the same names; nil when the Pod does not have them yet.
	Scheduled       *Condition `json:"scheduled,omitempty"`
	Initialized     *Condition `json:"initialized,omitempty"`
	ContainersReady *Condition `json:"containersReady,omitempty"`
	Ready           *Condition `json:"ready,omitempty"`
	// Disruption is the DisruptionTarget condition: its Reason says who took
	// the pod away (eviction, preemption, node taint).
	Disruption *Condition `json:"disruption,omitempty"`
	// Started is the latest start among the running containers, and Stopped
	// the latest end once none runs any more. Both claimed.
	Started time.Time `json:"started,omitzero"`
	Stopped time.Time `json:"stopped,omitzero"`
	// Deletion is metadata.deletionTimestamp (request + grace), Grace
	// metadata.deletionGracePeriodSeconds.
	Deletion time.Time     `json:"deletion,omitzero"`
	Grace    time.Duration `json:"grace,omitempty"`
	// ReadinessPeriod and so on describe the slowest readiness probe; zero
	// without one.
	ReadinessPeriod           time.Duration `json:"readinessPeriod,omitempty"`
	ReadinessSuccessThreshold int32         `json:"readinessSuccess,omitempty"`
	ReadinessFailureThreshold int32         `json:"readinessFailure,omitempty"`
	Revision                  string        `json:"revision,omitempty"` // pod-template-hash
	// Waiting is why a container does not run, by the kubelet's word, for instance
	// "CrashLoopBackOff" or "ImagePullBackOff"; of the first that waits for another
	// reason than to be made. Restarts adds up those of all containers.
	Waiting  string `json:"waiting,omitempty"`
	Restarts int32  `json:"restarts,omitempty"`
}

// Type implements Payload.
func (*Pod) Type() string { return "pod" }

// IsReady reports the Ready condition.
func (p *Pod) IsReady() bool { return p.Ready != nil && p.Ready.Status }

// Terminating reports whether deletion was requested.
func (p *Pod) Terminating() bool { return !p.Deletion.IsZero() }

// Terminal reports whether the phase is final (Succeeded or Failed).
func (p *Pod) Terminal() bool { return p.Phase == "Succeeded" || p.Phase == "Failed" }

// ServicePort is one port of a Service. TargetName is set when the target is a
// named container port, else Target is the number.
type ServicePort struct {
	Name       string   `json:"name,omitempty"`
	Protocol   Protocol `json:"proto"`
	Port       int32    `json:"port"`
	NodePort   int32    `json:"nodePort,omitempty"`
	Target     int32    `json:"target,omitempty"`
	TargetName string   `json:"targetName,omitempty"`
}

// Service is what a Service wants.
type Service struct {
	Labels  map[string]string `json:"labels,omitempty"`
	Created time.Time         `json:"created,omitzero"`
	// Written is when the Service was last written, its status included, by its
	// own words, to the second; zero when it does not say. A write that only took
	// something away, such as a port, does not show.
	Written     time.Time         `json:"written,omitzero"`
	Kind        string            `json:"type,omitempty"` // spec.type
	Selector    map[string]string `json:"selector,omitempty"`
	Ports       []ServicePort     `json:"ports,omitempty"`
	ClusterIPs  []netip.Addr      `json:"clusterIPs,omitempty"`
	Families    []Family          `json:"families,omitempty"`
	ExternalIPs []netip.Addr      `json:"externalIPs,omitempty"`
	// LoadBalancerIPs are status.loadBalancer.ingress[].ip with VIP mode.
	LoadBalancerIPs          []netip.Addr `json:"loadBalancerIPs,omitempty"`
	Headless                 bool         `json:"headless,omitempty"`
	PublishNotReadyAddresses bool         `json:"publishNotReady,omitempty"`
	// InternalPolicy and ExternalPolicy are "Cluster" or "Local".
	InternalPolicy      string `json:"internalPolicy,omitempty"`
	ExternalPolicy      string `json:"externalPolicy,omitempty"`
	SessionAffinity     string `json:"affinity,omitempty"`
	TrafficDistribution string `json:"trafficDistribution,omitempty"`
	// AffinityTimeout is how long a client stays with its endpoint; zero when
	// the Service does not say.
	AffinityTimeout time.Duration `json:"affinityTimeout,omitempty"`
	// SourceRanges are spec.loadBalancerSourceRanges: where connections to the
	// LoadBalancerIPs may come from. None means anywhere.
	SourceRanges []netip.Prefix `json:"sourceRanges,omitempty"`
	// HealthCheckPort is spec.healthCheckNodePort; 0 without one.
	HealthCheckPort int32 `json:"healthCheckPort,omitempty"`
	// ProxyName is the service.kubernetes.io/service-proxy-name label: set
	// means that kube-proxy leaves the Service alone.
	ProxyName string `json:"proxyName,omitempty"`
}

// Type implements Payload.
func (*Service) Type() string { return "service" }

// SlicePort is one port of an EndpointSlice: the target port as resolved.
type SlicePort struct {
	Name     string   `json:"name,omitempty"`
	Protocol Protocol `json:"proto"`
	Port     int32    `json:"port"`
}

// SliceEndpoint is one endpoint of an EndpointSlice. Nil conditions have
// Kubernetes' defaults already applied (ready and serving true, terminating
// false).
type SliceEndpoint struct {
	Address     netip.Addr `json:"ip"`
	Ready       bool       `json:"ready"`
	Serving     bool       `json:"serving"`
	Terminating bool       `json:"terminating,omitempty"`
	Node        string     `json:"node,omitempty"`
	Zone        string     `json:"zone,omitempty"`
	// PodName and PodUID come from targetRef; both empty for addresses that
	// no pod stands behind.
	PodName   string   `json:"pod,omitempty"`
	PodUID    string   `json:"uid,omitempty"`
	HintZones []string `json:"hintZones,omitempty"`
	HintNodes []string `json:"hintNodes,omitempty"`
}

// EndpointSlice is the content of one slice.
type EndpointSlice struct {
	Service   string          `json:"service,omitempty"` // kubernetes.io/service-name
	ManagedBy string          `json:"managedBy,omitempty"`
	Family    Family          `json:"family"` // addressType; FQDN slices are not emitted
	Headless  bool            `json:"headless,omitempty"`
	Ports     []SlicePort     `json:"ports,omitempty"`
	Endpoints []SliceEndpoint `json:"endpoints,omitempty"`
	// TriggerTime is the endpoints.kubernetes.io/last-change-trigger-time
	// annotation; zero when absent.
	TriggerTime time.Time `json:"trigger,omitzero"`
	Created     time.Time `json:"created,omitzero"`
	// Written is when the object was last written by its own words: the newest
	// time in metadata.managedFields, by the API server's clock and to the
	// second. Zero when that is not known: in recordings from before the field,
	// and without endpoints, because what took the last one away need not have
	// moved that time. It is claimed, never observed.
	Written time.Time `json:"written,omitzero"`
}

// Type implements Payload.
func (*EndpointSlice) Type() string { return "endpointslice" }

// EndpointsAddress is one address of a legacy Endpoints object.
type EndpointsAddress struct {
	IP      netip.Addr  `json:"ip"`
	Ready   bool        `json:"ready"`
	PodName string      `json:"pod,omitempty"`
	PodUID  string      `json:"uid,omitempty"`
	Ports   []SlicePort `json:"ports,omitempty"`
}

// Endpoints is the content of a legacy v1 Endpoints object, one entry for each
// address, with the ports of the subset it stood in.
type Endpoints struct {
	Addresses []EndpointsAddress `json:"addresses,omitempty"`
	Truncated bool               `json:"truncated,omitempty"`
	// NotMirrored: they ask to be left out of mirroring into slices, or are the
	// lock of a leader election.
	NotMirrored bool      `json:"notMirrored,omitempty"`
	TriggerTime time.Time `json:"trigger,omitzero"`
	Created     time.Time `json:"created,omitzero"`
	// Written as in EndpointSlice.
	Written time.Time `json:"written,omitzero"`
}

// Type implements Payload.
func (*Endpoints) Type() string { return "endpoints" }

// Node is what a Node says about itself.
type Node struct {
	Labels    map[string]string `json:"labels,omitempty"`
	Zone      string            `json:"zone,omitempty"`
	Addresses []netip.Addr      `json:"addresses,omitempty"` // InternalIP
	Ready     *Condition        `json:"ready,omitempty"`
	// Heard is when the kubelet last posted its status, by its own clock, of a node
	// whose readiness is Unknown because nothing was heard of it since. Between that
	// and the marking it was last alive: its Lease, which says when, is not watched.
	// Zero of others.
	Heard         time.Time `json:"heard,omitzero"`
	Unschedulable bool      `json:"unschedulable,omitempty"`
	Deletion      time.Time `json:"deletion,omitzero"`
	// ProxyMode is not in the API; it stays empty unless a source knows it.
	ProxyMode string `json:"proxyMode,omitempty"`
}

// Type implements Payload.
func (*Node) Type() string { return "node" }

// Workload is a Deployment, ReplicaSet, StatefulSet or DaemonSet: what it wants
// and how far it is. The event's Object.Kind tells which. Of a DaemonSet the
// replicas are the nodes that should have its pod.
type Workload struct {
	Owner              *Owner            `json:"owner,omitempty"`
	Selector           map[string]string `json:"selector,omitempty"`
	Generation         int64             `json:"generation"`
	ObservedGeneration int64             `json:"observedGeneration"`
	Replicas           int32             `json:"replicas"` // spec
	StatusReplicas     int32             `json:"statusReplicas"`
	Updated            int32             `json:"updated"`
	Ready              int32             `json:"ready"`
	Available          int32             `json:"available"`
	Revision           string            `json:"revision,omitempty"`
	TemplateLabels     map[string]string `json:"templateLabels,omitempty"`
	Paused             bool              `json:"paused,omitempty"`
	// Partition is how many of the replicas a StatefulSet's or DaemonSet's
	// update leaves as they are: all of them where pods are only updated when
	// somebody deletes them.
	Partition int32 `json:"partition,omitempty"`
	// MinReady is spec.minReadySeconds: for how long a pod must have been ready to
	// count as available.
	MinReady time.Duration `json:"minReady,omitempty"`
}

// Type implements Payload.
func (*Workload) Type() string { return "workload" }

// KubeEvent is a Kubernetes Event (core/v1) about Regarding.
type KubeEvent struct {
	Regarding ObjectKey `json:"regarding"`
	UID       string    `json:"regardingUID,omitempty"`
	Reason    string    `json:"reason"`
	Message   string    `json:"message,omitempty"`
	EventType string    `json:"eventType,omitempty"`
	Component string    `json:"component,omitempty"`
	// Init: it is about an init container of a Pod, by its fieldPath.
	Init  bool      `json:"init,omitempty"`
	Count int32     `json:"count,omitempty"`
	First time.Time `json:"first,omitzero"`
	Last  time.Time `json:"last,omitzero"`
}

// Type implements Payload.
func (*KubeEvent) Type() string { return "kubeevent" }
