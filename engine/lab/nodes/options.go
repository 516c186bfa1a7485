package nodes

import (
	"encoding/binary"
	"fmt"
	"net/netip"
)

// Path says how packets get from one node to a pod of another.
type Path string

const (
	// PathRouted: each node has a veth pair to a fabric namespace, which
	// forwards between them. Packets to another node's pod leave the node.
	PathRouted Path = "routed"
	// PathLocal: there are no links between the nodes; every node answers for
	// the pod addresses of all nodes itself, with listeners opened in each.
	// The rules are passed just the same, the wire is not.
	PathLocal Path = "local"
)

// Defaults of Options.
var (
	DefaultPodCIDR     = netip.MustParsePrefix("10.244.0.0/16")
	DefaultServiceCIDR = netip.MustParsePrefix("10.96.0.0/12")
	// DefaultNodeCIDR is the range for benchmarks (RFC 2544), which no real
	// network should use.
	DefaultNodeCIDR = netip.MustParsePrefix("198.18.0.0/16")
)

// The ranges of IPv6 in a dual-stack cluster. Node N has a /64 of PodCIDRv6 and
// address N of NodeCIDRv6, which is for benchmarks as well (RFC 5180).
var (
	PodCIDRv6     = netip.MustParsePrefix("fd00:10:244::/48")
	ServiceCIDRv6 = netip.MustParsePrefix("fd00:10:96::/112")
	NodeCIDRv6    = netip.MustParsePrefix("2001:2::/64")
)

// MaxNodes is how many nodes one cluster may have: each gets a /24 of a /16.
const MaxNodes = 254

// Options say what to make. The zero value of a field means its default.
type Options struct {
	// Names of the nodes; when empty, node-1 to node-Count.
	Names []string
	Count int
	// PodCIDR is cut into a /24 for each node, counted from 1; it must be an
	// IPv4 prefix of 16 bits or fewer, as must be NodeCIDR, from which node N
	// gets address N. ServiceCIDR is where the ClusterIPs lie.
	PodCIDR, ServiceCIDR, NodeCIDR netip.Prefix
	// DualStack gives nodes and pods an IPv6 address beside the IPv4 one;
	// NoIPv6 tells whether that can be had.
	DualStack bool
	// Unanswered are the names of nodes that do not answer for the addresses of
	// their pods by themselves, because something else gives these a network (a
	// CNI plugin). They are routed to the node all the same, with PathRouted only;
	// Allocate and Open are not for such a node.
	Unanswered []string
	// Path forces one way; when empty, PathRouted is tried and PathLocal
	// taken where links or forwarding are refused.
	Path Path
	// ReuseAtOnce, when set, tells whether a node gives out the address that was given
	// back last, in the place of the one that has been free for the longest. It is
	// asked with each address that is given back.
	ReuseAtOnce func(node string) bool
	// Failed, when set, is told what could not be done after the fact: a port
	// of an open pod that SetTargetPorts could not open. Safe for concurrent
	// use.
	Failed func(error)
}

// withDefaults fills in what is not set and checks the rest.
func (o Options) withDefaults() (Options, error) {
	if len(o.Names) == 0 {
		for i := range o.Count {
			o.Names = append(o.Names, fmt.Sprintf("node-%d", i+1))
		}
	}
	if len(o.Names) == 0 || len(o.Names) > MaxNodes {
		return o, fmt.Errorf("a lab has 1 to %d nodes, not %d", MaxNodes, len(o.Names))
	}
	seen := map[string]bool{}
	for _, n := range o.Names {
		if n == "" || seen[n] {
			return o, fmt.Errorf("node name %q is empty or given twice", n)
		}
		seen[n] = true
	}
	for _, f := range []struct {
		name string
		p    *netip.Prefix
		def  netip.Prefix
		bits int
	}{
		{"pod range", &o.PodCIDR, DefaultPodCIDR, 16},
		{"service range", &o.ServiceCIDR, DefaultServiceCIDR, 28},
		{"node range", &o.NodeCIDR, DefaultNodeCIDR, 16},
	} {
		if !f.p.IsValid() {
			*f.p = f.def
		}
		if !f.p.Addr().Is4() || f.p.Bits() > f.bits {
			return o, fmt.Errorf("%s %s must be IPv4 and no smaller than a /%d", f.name, f.p, f.bits)
		}
		*f.p = f.p.Masked()
	}
	for _, p := range [][2]netip.Prefix{{o.PodCIDR, o.ServiceCIDR}, {o.PodCIDR, o.NodeCIDR}, {o.NodeCIDR, o.ServiceCIDR}} {
		if p[0].Overlaps(p[1]) {
			return o, fmt.Errorf("ranges %s and %s overlap: choose others", p[0], p[1])
		}
	}
	for _, n := range o.Unanswered {
		if !seen[n] {
			return o, fmt.Errorf("there is no node %q to leave its pods alone", n)
		}
		if o.Path != PathRouted {
			return o, fmt.Errorf("the pods of %s are reached over links only: use path %q", n, PathRouted)
		}
	}
	if o.Failed == nil {
		o.Failed = func(error) {}
	}
	switch o.Path {
	case "", PathRouted, PathLocal:
	default:
		return o, fmt.Errorf("unknown path %q: use %q or %q", o.Path, PathRouted, PathLocal)
	}
	return o, nil
}

// reuse is ReuseAtOnce for one node.
func (o Options) reuse(node string) func() bool {
	if o.ReuseAtOnce == nil {
		return nil
	}
	return func() bool { return o.ReuseAtOnce(node) }
}

// add returns the n-th address after a, which must not cross 32 bits.
func add(a netip.Addr, n uint32) netip.Addr {
	b := a.AsSlice()
	low := b[len(b)-4:]
	binary.BigEndian.PutUint32(low, binary.BigEndian.Uint32(low)+n)
	out, _ := netip.AddrFromSlice(b)
	return out
}

// podCIDRs are the pod ranges of node n, counted from 1, IPv4 first.
func (o Options) podCIDRs(n int) []netip.Prefix {
	out := []netip.Prefix{netip.PrefixFrom(add(o.PodCIDR.Addr(), uint32(n)<<8), 24)}
	if o.DualStack {
		b := PodCIDRv6.Addr().As16()
		binary.BigEndian.PutUint16(b[6:], uint16(n))
		out = append(out, netip.PrefixFrom(netip.AddrFrom16(b), 64))
	}
	return out
}

// nodeAddrs are the addresses of node n, counted from 1, IPv4 first.
func (o Options) nodeAddrs(n int) []netip.Addr {
	out := []netip.Addr{add(o.NodeCIDR.Addr(), uint32(n))}
	if o.DualStack {
		out = append(out, add(NodeCIDRv6.Addr(), uint32(n)))
	}
	return out
}

// gateway is the fabric's address on every link, in the family of an address.
func (o Options) gateway(of netip.Addr) netip.Addr {
	if of.Is6() {
		return add(NodeCIDRv6.Addr(), 1<<16-2)
	}
	return add(o.NodeCIDR.Addr(), 1<<(32-o.NodeCIDR.Bits())-2)
}

// services is where the ClusterIPs of an address's family lie.
func (o Options) services(of netip.Addr) netip.Prefix {
	if of.Is6() {
		return ServiceCIDRv6
	}
	return o.ServiceCIDR
}
