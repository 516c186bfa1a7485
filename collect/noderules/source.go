package noderules

import (
	"fmt"
	"time"

	"github.com/kconverge/kconverge/collect"
)

// DefaultHeartbeat is the longest time between two confirmations.
const DefaultHeartbeat = 10 * time.Second

// DefaultPoll is how often legacy iptables is looked at.
const DefaultPoll = time.Second

// DefaultReceiveBuffer is the receive buffer asked for, in bytes. The kernel's
// own default (212,992) overflows on one large generation.
const DefaultReceiveBuffer = 32 << 20

// Options say which node's rules to read.
type Options struct {
	// Node is the node's name in events.
	Node string
	// NetNS is a file descriptor of the network namespace to read. 0 or less
	// means the namespace of the thread that calls Run or Read. It is used
	// while Run or Read opens its sockets (for Run: until the first event) and
	// stays the caller's to close.
	NetNS int
	// Clock stamps events; nil means the system's. It is read from several
	// goroutines.
	Clock collect.Clock
	// Heartbeat is the longest time between two Vouch events while nothing
	// changes; 0 means DefaultHeartbeat.
	Heartbeat time.Duration
	// Poll is how often legacy iptables is looked at, as it has no
	// notifications; 0 means DefaultPoll.
	Poll time.Duration
	// Known are Service ports whose names may be missing from the rules: the
	// chains of kube-proxy's iptables mode are named by hashes, and comments,
	// which say what they are of, can be left out. Family, Policy and what
	// follows from the rules themselves are not looked at.
	Known []collect.RulePortKey
	// ReceiveBuffer is the receive buffer to ask for in bytes; 0 means
	// DefaultReceiveBuffer.
	ReceiveBuffer int
}

func (o Options) withDefaults() Options {
	if o.Clock == nil {
		o.Clock = collect.SystemClock{}
	}
	if o.Heartbeat <= 0 {
		o.Heartbeat = DefaultHeartbeat
	}
	if o.Poll <= 0 {
		o.Poll = DefaultPoll
	}
	if o.ReceiveBuffer <= 0 {
		o.ReceiveBuffer = DefaultReceiveBuffer
	}
	return o
}

// Source reads one node's rules. It is a collect.Source and a collect.Voucher.
//
// Its events, all of source rules/NODE and about the Node: first a Rules event
// with Baseline, then SourceState synced; then for each committed generation
// that changes what is routed a Rules event whose At is when its last message
// was received, and a Vouch. What the kernel dropped shows as an open Gap, a
// Rules event with NotBefore that holds exactly the ports that differ (none
// when nothing does), and the closed Gap.
//
// A node whose rules stand in legacy iptables is polled. Its Rules events have a
// NotBefore, the beginning of the look before the one that found the change, and
// the Generation of nf_tables, which says nothing about them; a Vouch reaches to
// the beginning of the last look at most.
//
// A Vouch says that the rules stood at Generation when the kernel was asked for
// its generation, which was at Until or later, and that every generation up to
// it has been emitted.
type Source struct {
	opts Options
	ask  chan struct{}
}

var (
	_ collect.Source  = (*Source)(nil)
	_ collect.Voucher = (*Source)(nil)
)

// New returns a Source. Nothing is opened before Run.
func New(o Options) *Source {
	return &Source{opts: o.withDefaults(), ask: make(chan struct{}, 1)}
}

// Name implements collect.Source.
func (s *Source) Name() string { return "rules of " + s.opts.Node }

// Vouch implements collect.Voucher.
func (s *Source) Vouch() {
	select {
	case s.ask <- struct{}{}:
	default: // already asked
	}
}

// UnsupportedError says that this operating system has no nftables.
type UnsupportedError struct {
	// OS is the operating system, as runtime.GOOS has it.
	OS string
}

// Error implements error.
func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("a node's rules can only be read on Linux, this is %s: run kconverge-agent on the node, or watch without rules", e.OS)
}

func (o Options) event(at time.Time, p collect.Payload) collect.Event {
	return collect.Event{
		At:      at,
		Source:  collect.RulesSource(o.Node),
		Object:  collect.ObjectKey{Kind: "Node", Name: o.Node},
		Payload: p,
	}
}

func (o Options) baseline(t *tracker) *collect.Rules {
	return &collect.Rules{
		Node: o.Node, Generation: t.gen, Layout: t.layout(), NoLayout: t.noLayout, Baseline: true,
		Ports: t.ports(), Unknown: t.odd, Ignored: t.ignored(),
	}
}

func (o Options) known() []kpPort {
	out := make([]kpPort, len(o.Known))
	for i, k := range o.Known {
		out[i] = kpPort{namespace: k.Namespace, service: k.Service, port: k.Port, proto: k.Protocol}
	}
	return out
}
