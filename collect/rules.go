package collect

import (
	"cmp"
	"net/netip"
	"slices"
	"time"
)

// Policy is which endpoints a frontend may use: all of the cluster, or only
// those on the node itself.
type Policy string

const (
	PolicyCluster Policy = "Cluster"
	PolicyLocal   Policy = "Local"
)

// FrontendKind is the kind of address that leads to a Service port.
type FrontendKind string

const (
	FrontendClusterIP    FrontendKind = "ClusterIP"
	FrontendNodePort     FrontendKind = "NodePort"
	FrontendExternalIP   FrontendKind = "ExternalIP"
	FrontendLoadBalancer FrontendKind = "LoadBalancer"
)

// Frontend is one address that a node's rules catch. For a NodePort the
// address is unspecified ("0.0.0.0" or "::").
type Frontend struct {
	Kind FrontendKind   `json:"kind"`
	Addr netip.AddrPort `json:"addr"`
}

// RulePortKey names one routed set of a node: a Service port in one family
// under one policy.
type RulePortKey struct {
	Namespace string   `json:"ns"`
	Service   string   `json:"svc"`
	Port      string   `json:"port,omitempty"` // the Service port's name
	Protocol  Protocol `json:"proto"`
	Family    Family   `json:"family"`
	Policy    Policy   `json:"policy"`
}

// Compare orders keys by namespace, Service, port name, protocol, family and
// policy.
func (k RulePortKey) Compare(o RulePortKey) int {
	return cmp.Or(cmp.Compare(k.Namespace, o.Namespace), cmp.Compare(k.Service, o.Service),
		cmp.Compare(k.Port, o.Port), cmp.Compare(k.Protocol, o.Protocol),
		cmp.Compare(k.Family, o.Family), cmp.Compare(k.Policy, o.Policy))
}

// RulePort is what a node's rules do for one RulePortKey: which frontends reach
// it and which endpoints they are spread over. With frontends but no endpoints
// connections are rejected. Both lists are sorted and without duplicates.
type RulePort struct {
	RulePortKey
	Frontends []Frontend       `json:"frontends,omitempty"`
	Endpoints []netip.AddrPort `json:"endpoints,omitempty"`
	// Sources are the only addresses from which the LoadBalancer frontends may
	// be reached, as the fewest prefixes; nil for anywhere.
	Sources []netip.Prefix `json:"sources,omitempty"`
	// Affinity is for how long after its last connection a client is sent to
	// the same endpoint again; 0 without session affinity, or without
	// endpoints.
	Affinity time.Duration `json:"affinity,omitempty"`
}

// Equal reports that both say the same. They must be sorted, as they are in
// Rules.
func (p *RulePort) Equal(o *RulePort) bool {
	return p.RulePortKey == o.RulePortKey && p.Affinity == o.Affinity && slices.Equal(p.Frontends, o.Frontends) &&
		slices.Equal(p.Endpoints, o.Endpoints) && slices.Equal(p.Sources, o.Sources)
}

// Empty reports that nothing is left of the port: no frontend and no endpoint.
func (p *RulePort) Empty() bool { return len(p.Frontends) == 0 && len(p.Endpoints) == 0 }

// LayoutIPTables begins the names of the layouts of kube-proxy's iptables mode. It
// has no RulePort.Sources while a Service port has no endpoints: kube-proxy writes
// its firewall chain only with some.
const LayoutIPTables = "kube-proxy-iptables"

// Rules is one committed generation of a node's kernel rules, resolved: the
// complete new state of every port that the generation changed (a port that
// went is listed with Empty() true). With Baseline it is everything there is,
// found by a dump: ports not listed do not exist, and when they came is not
// known.
type Rules struct {
	Node       string `json:"node"`
	Generation uint32 `json:"generation"`
	// Layout names the rule layout, for instance "kube-proxy-nftables".
	Layout string `json:"layout,omitempty"`
	// NoLayout says, when Layout is empty, what was found instead of rules of a
	// known layout: that kube-proxy has none here, and who else seems to route.
	NoLayout string     `json:"nolayout,omitempty"`
	Process  string     `json:"process,omitempty"` // of the generation's writer
	PID      uint32     `json:"pid,omitempty"`
	Baseline bool       `json:"baseline,omitempty"`
	Ports    []RulePort `json:"ports,omitempty"`
	// Unknown are endpoints or rules that the decoder met and could not tie
	// to a Service: "chain service-…: 10.1.2.3:80". Shown, never dropped. It
	// is the whole list as of this generation, also when not Baseline: an
	// event with an empty list says that nothing unknown is left.
	Unknown []string `json:"unknown,omitempty"`
	// Ignored counts the rules in the tables read that are not the service
	// proxy's (a firewall's, a container runtime's) and were left out.
	Ignored int `json:"ignored,omitempty"`
	// Part counts from 1 to Parts when an agent tells one generation in
	// several lines, because lines are short. A port may then stand in
	// several parts with a part of its lists. Both are 0 everywhere else: the
	// model takes whole generations.
	Part  int `json:"part,omitempty"`
	Parts int `json:"parts,omitempty"`
}

// NoRules is what NoLayout says when nothing at all was found that routes
// Services: kube-proxy has not programmed any yet.
const NoRules = "no rules of kube-proxy in either family"

// Elsewhere tells why rules say nothing about how the node routes Services: what
// else does, as NoLayout has it. It is empty when the rules are the node's, or
// nothing routes Services there.
func (r *Rules) Elsewhere() string {
	if r.Layout != "" || r.NoLayout == NoRules {
		return ""
	}
	return r.NoLayout
}

// Type implements Payload.
func (*Rules) Type() string { return "rules" }

// Vouch confirms that the event's source has delivered everything that happened
// up to Until (its own clock): a watch bookmark, a consistent list that matched,
// a node's heartbeat.
type Vouch struct {
	Until time.Time `json:"until"`
	How   string    `json:"how"` // "list", "bookmark", "check", "heartbeat"
	// Generation is the rule generation of a node's heartbeat.
	Generation uint32 `json:"generation,omitempty"`
}

// Type implements Payload.
func (*Vouch) Type() string { return "vouch" }

// SourceStateName is the state of a source.
type SourceStateName string

const (
	SourceStarting  SourceStateName = "starting"
	SourceListing   SourceStateName = "listing"
	SourceSynced    SourceStateName = "synced" // list complete, watching
	SourceBroken    SourceStateName = "broken" // retrying
	SourceForbidden SourceStateName = "forbidden"
	SourceStopped   SourceStateName = "stopped"
)

// SourceState tells how a source is. Between a list's OpListed events and its
// SourceSynced the content is incomplete. A Synced that follows a Broken means
// that everything between was learnt by listing.
type SourceState struct {
	State  SourceStateName `json:"state"`
	Detail string          `json:"detail,omitempty"` // an error and the way out
	Count  int             `json:"count,omitempty"`  // objects after a list
}

// Type implements Payload.
func (*SourceState) Type() string { return "sourcestate" }

// WhyUnreadable is the Why of the gaps that every source has where a recording is damaged.
const WhyUnreadable = "a part of the recording cannot be read"

// Gap says that the source lost events or was not watching in [From, To]. A
// zero To means that the gap is still open.
type Gap struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to,omitzero"`
	Why  string    `json:"why"`
	Lost int       `json:"lost,omitempty"` // events lost, when known
}

// Type implements Payload.
func (*Gap) Type() string { return "gap" }
