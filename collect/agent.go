package collect

import (
	"encoding/binary"
	"encoding/hex"
	"hash/fnv"
	"time"
)

// SourceAgentPrefix is completed by a node name.
const SourceAgentPrefix = "agent/"

// SourceAgents is the source of whether agents are found at all.
const SourceAgents SourceID = "agents"

// AgentSource is the source of what one node's agent says about itself, its
// clock and the node's kube-proxy. What it says about rules comes from
// RulesSource.
func AgentSource(node string) SourceID { return SourceID(SourceAgentPrefix + node) }

// NodeClock is how far a machine's clock may be trusted, by its own kernel.
type NodeClock struct {
	// Synchronised: the kernel says that the clock is disciplined
	// (adjtimex(2): neither STA_UNSYNC nor TIME_ERROR).
	Synchronised bool `json:"synchronised"`
	// MaxError is the kernel's bound on its difference from true time
	// (adjtimex's maxerror). It means nothing when not Synchronised.
	MaxError time.Duration `json:"maxError,omitempty"`
	// Boot names the kernel that runs the clock
	// (/proc/sys/kernel/random/boot_id): two programs with one Boot read one
	// clock. Empty when unknown.
	Boot string `json:"boot,omitempty"`
}

// AgentState is what a node's agent says about itself: its first line, and
// again with every heartbeat.
type AgentState struct {
	Node    string `json:"node"`
	Version string `json:"version,omitempty"`
	// Instance is another one after every start.
	Instance string    `json:"instance"`
	Started  time.Time `json:"started"`
	// Uptime is the time since Started on a clock that is never set: where it
	// disagrees with the wall clock, that was set.
	Uptime time.Duration `json:"uptime,omitempty"`
	// Heartbeat and Keyframe are the longest times between two of each.
	Heartbeat time.Duration `json:"heartbeat"`
	Keyframe  time.Duration `json:"keyframe"`
	Clock     NodeClock     `json:"clock"`
}

// Type implements Payload.
func (*AgentState) Type() string { return "agent" }

// Keyframe is everything that a node's rules do, as of Generation: enough for
// whoever did not see the lines before it. A port with many endpoints is told
// by its digest alone.
type Keyframe struct {
	Node       string `json:"node"`
	Generation uint32 `json:"generation"`
	Layout     string `json:"layout,omitempty"`
	NoLayout   string `json:"nolayout,omitempty"` // as in Rules
	// Part counts from 1 to Parts when a keyframe takes several lines.
	Part    int       `json:"part,omitempty"`
	Parts   int       `json:"parts,omitempty"`
	Ports   []KeyPort `json:"ports,omitempty"`
	Unknown []string  `json:"unknown,omitempty"` // as in Rules
}

// Type implements Payload.
func (*Keyframe) Type() string { return "keyframe" }

// KeyPort is one port of a keyframe. Without Whole its lists are left out.
type KeyPort struct {
	RulePort
	Digest string `json:"digest"` // as Digest gives it
	N      int    `json:"n"`      // endpoints
	Whole  bool   `json:"whole,omitempty"`
}

// Digest is a 64-bit FNV-1a digest of all that a port's rules do, as 16
// hexadecimal digits: its frontends, endpoints, session affinity and sources. It
// does not depend on the port's key. The lists must be sorted; an empty one is
// the same as none.
func (p *RulePort) Digest() string {
	h := fnv.New64a()
	var b []byte
	count := func(n int) { b = binary.AppendUvarint(b, uint64(n)) }
	text := func(s string) { count(len(s)); b = append(b, s...) }
	count(len(p.Frontends))
	for _, f := range p.Frontends {
		text(string(f.Kind))
		text(f.Addr.String())
	}
	count(len(p.Endpoints))
	for _, a := range p.Endpoints {
		text(a.String())
	}
	b = binary.AppendVarint(b, int64(p.Affinity))
	count(len(p.Sources))
	for _, s := range p.Sources {
		text(s.String())
	}
	h.Write(b) // never fails
	return hex.EncodeToString(h.Sum(nil))
}

// ProxyState is what the kube-proxy of a node says at its own metrics and
// health ports. Its counters start anew when it restarts (Started changes).
type ProxyState struct {
	Node string `json:"node"`
	// Reachable: the metrics port answered. Why tells why not.
	Reachable bool   `json:"reachable"`
	Why       string `json:"why,omitempty"`
	// Healthy is what its health port says; nil when that does not answer.
	Healthy *bool `json:"healthy,omitempty"`
	// Mode is "nftables", "iptables" or "ipvs".
	Mode    string    `json:"mode,omitempty"`
	Version string    `json:"version,omitempty"`
	Started time.Time `json:"started,omitzero"`
	// ProgrammingCount and ProgrammingSeconds are the count and the sum of
	// kubeproxy_network_programming_duration_seconds.
	ProgrammingCount   uint64  `json:"programmingCount,omitempty"`
	ProgrammingSeconds float64 `json:"programmingSeconds,omitempty"`
	// SyncCount and SyncSeconds are those of
	// kubeproxy_sync_proxy_rules_duration_seconds.
	SyncCount   uint64  `json:"syncCount,omitempty"`
	SyncSeconds float64 `json:"syncSeconds,omitempty"`
	// SyncFailures adds up its counters of failed programming.
	SyncFailures uint64 `json:"syncFailures,omitempty"`
	// LastSync and LastQueued are when rules were last synced, and when a
	// sync was last asked for.
	LastSync   time.Time `json:"lastSync,omitzero"`
	LastQueued time.Time `json:"lastQueued,omitzero"`
	// Pending are changes of endpoints and of Services that wait for a sync.
	PendingEndpoints int `json:"pendingEndpoints,omitempty"`
	PendingServices  int `json:"pendingServices,omitempty"`
}

// Type implements Payload.
func (*ProxyState) Type() string { return "proxy" }

// ClockBound is how a source's times were brought to the viewer's clock: the
// times of the events that follow are the source's own plus Offset, and off by
// at most Error either way. When OneSided they are the latest possible ones:
// what happened may have happened any time before.
type ClockBound struct {
	Offset   time.Duration `json:"offset"`
	Error    time.Duration `json:"error"`
	OneSided bool          `json:"oneSided,omitempty"`
	// How is "one clock", "synchronised", "causes and logs" or "logs".
	How string `json:"how"`
}

// Type implements Payload.
func (*ClockBound) Type() string { return "clockbound" }
