package collect

import (
	"net/netip"
	"time"
)

// SourceTrafficPrefix is completed by the name of the node that opens connections.
const SourceTrafficPrefix = "traffic/"

// TrafficSource is the source of the connections that one node opens.
func TrafficSource(node string) SourceID { return SourceID(SourceTrafficPrefix + node) }

// Connections tells what became of the connections that a node opened to one port of
// a Service, the event's Object, and that ended between From and the event's At.
type Connections struct {
	Node    string         `json:"node"`
	Address netip.AddrPort `json:"addr"` // of the Service
	From    time.Time      `json:"from"`
	OK      int            `json:"ok,omitempty"`
	Failed  int            `json:"failed,omitempty"`
	// Skipped were not opened, because too many were under way.
	Skipped int `json:"skipped,omitempty"`
	// Slowest is the longest time from the first packet to the answer, of those that
	// were answered.
	Slowest  time.Duration `json:"slowest,omitempty"`
	Answered []Answered    `json:"answered,omitempty"`
}

// Answered is how many connections one pod answered.
type Answered struct {
	UID string `json:"uid"`
	N   int    `json:"n"`
}

// Type implements Payload.
func (*Connections) Type() string { return "connections" }

// Results of a connection that failed.
const (
	ConnectionRefused     = "refused"     // nobody listens there, or a rule rejects it
	ConnectionTimedOut    = "timed out"   // no answer within the client's time
	ConnectionReset       = "reset"       // it was accepted and then broke
	ConnectionUnreachable = "unreachable" // no way there
)

// ConnectionFailed is one connection that failed, to one port of the event's Object.
// The event's At is when it had failed. Connections counts it as well.
type ConnectionFailed struct {
	Node    string         `json:"node"`
	Address netip.AddrPort `json:"addr"`
	// Began is when it was opened: which endpoint it goes to was decided then.
	Began  time.Time `json:"began"`
	Result string    `json:"result"`
}

// Type implements Payload.
func (*ConnectionFailed) Type() string { return "connection-failed" }
