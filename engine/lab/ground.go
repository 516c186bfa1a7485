package lab

import (
	"context"
	"net/netip"
	"time"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/collect/nodelog"
	"github.com/kconverge/kconverge/collect/noderules"
	"github.com/kconverge/kconverge/engine/lab/kubelet"
	"github.com/kconverge/kconverge/engine/lab/nodes"
	"github.com/kconverge/kconverge/engine/rulesync"
)

// ground is what the cluster stands on: nodes in network namespaces with rules in
// the kernel, or both in memory.
type ground struct {
	hosts []host
	ports portSetter
	close func() error
	// kernel are the nodes in network namespaces; nil in memory.
	kernel *nodes.Cluster
}

// host is one node's machine, as its kubelet needs it.
type host interface {
	kubelet.Sandbox
	Name() string
	Addresses() []netip.Addr
	PodCIDRs() []netip.Prefix
	// Cut takes the node off the network, or puts it back.
	Cut(off bool) error
}

// ruleReader observes a node's rules.
type ruleReader interface {
	collect.Source
	collect.Voucher
}

func (l *Lab) startGround(ctx context.Context, failed func(error)) (*ground, error) {
	o := nodes.Options{Names: l.names, Failed: failed, DualStack: l.noIPv6 == nil, ReuseAtOnce: l.faults.ReuseAtOnce}
	if l.refused != nil {
		m, err := nodes.StartInMemory(o)
		if err != nil {
			return nil, err
		}
		g := &ground{ports: m, close: m.Close}
		for _, n := range m.Nodes() {
			g.hosts = append(g.hosts, n)
		}
		return g, nil
	}
	c, err := nodes.Start(ctx, o)
	if err != nil {
		return nil, err
	}
	g := &ground{ports: c, close: c.Close, kernel: c}
	for _, n := range c.Nodes() {
		g.hosts = append(g.hosts, n)
	}
	return g, nil
}

// byNodesClock lets what is read of a node's rules be timed by the node's clock, as an
// agent there would, and brought back to the viewer's.
func (l *Lab) byNodesClock(node string, causes *nodelog.Causes, sink collect.Sink) collect.Sink {
	return nodelog.NewAligner(nodelog.AlignOptions{Sink: sink, Clock: l.o.Clock, Causes: causes, Ahead: func() time.Duration { return l.faults.ClockOff(node) }})
}

// rulesOf gives what observes a node's rules, and says to its rule sync where
// they are.
func (l *Lab) rulesOf(g *ground, h host, sync *rulesync.Options) ruleReader {
	if g.kernel == nil {
		m := rulesync.NewMemory(h.Name(), l.o.Clock, heartbeatEvery)
		sync.Table = m
		return m
	}
	sync.NetNS, sync.Dataplane = g.kernel.Node(h.Name()).NetNS(), l.o.Dataplane
	return noderules.New(noderules.Options{Node: h.Name(), NetNS: sync.NetNS, Clock: l.o.Clock, Heartbeat: heartbeatEvery})
}
