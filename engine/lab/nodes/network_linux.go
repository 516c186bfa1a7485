package nodes

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// uplink is the node's end of its link to the fabric.
const uplink = "eth0"

// procNet has the settings of the calling thread's namespace.
const procNet = "/proc/sys/net"

// sysctl sets a value under /proc/sys/net of the calling thread's namespace.
func sysctl(name, value string) error {
	path := procNet + "/" + strings.ReplaceAll(name, ".", "/")
	if err := os.WriteFile(path, []byte(value), 0); err != nil {
		return fmt.Errorf("set net.%s=%s: %w", name, value, err)
	}
	return nil
}

// quiet turns off what would answer for pods or talk without being asked: the
// filter on return paths (pods answer from addresses of no interface), and the
// discovery of IPv6, or all of IPv6 where it is not used. Interfaces made later
// inherit it.
func quiet(dualStack bool) error {
	for _, s := range []string{"ipv4.conf.all.rp_filter", "ipv4.conf.default.rp_filter"} {
		if err := sysctl(s, "0"); err != nil {
			return err
		}
	}
	if !dualStack {
		if err := sysctl("ipv6.conf.default.disable_ipv6", "1"); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		return nil
	}
	if err := allowIPv6(); err != nil {
		return err
	}
	// No address is tried out before it is used: the lab gives each out once.
	for _, s := range []string{"accept_dad", "accept_ra", "autoconf", "router_solicitations"} {
		if err := sysctl("ipv6.conf.default."+s, "0"); err != nil {
			return err
		}
	}
	return nil
}

// allowIPv6 turns on what the machine's settings may have turned off for new
// namespaces.
func allowIPv6() error {
	b, err := os.ReadFile(procNet + "/ipv6/conf/all/disable_ipv6")
	if err != nil {
		return err
	}
	lo, err := os.ReadFile(procNet + "/ipv6/conf/lo/disable_ipv6")
	if err != nil {
		return err
	}
	if strings.TrimSpace(string(b)) == "0" && strings.TrimSpace(string(lo)) == "0" {
		return nil
	}
	return sysctl("ipv6.conf.all.disable_ipv6", "0") // of each interface too
}

// setUp is the part of a node's network that needs no link: lo up, and every
// address of the local ranges answered for, so that a pod address can be
// listened on without being configured.
func setUp(h *netlink.Handle, local ...netip.Prefix) error {
	lo, err := h.LinkByName("lo")
	if err != nil {
		return fmt.Errorf("find lo: %w", err)
	}
	if err := h.LinkSetUp(lo); err != nil {
		return fmt.Errorf("set lo up: %w", err)
	}
	for _, p := range local {
		r := &netlink.Route{LinkIndex: lo.Attrs().Index, Dst: ipNet(p), Type: unix.RTN_LOCAL, Scope: netlink.SCOPE_HOST, Table: unix.RT_TABLE_LOCAL}
		if err := h.RouteAdd(r); err != nil {
			return fmt.Errorf("answer locally for %s: %w", p, err)
		}
	}
	return nil
}

// localPath makes a node answer for everything by itself: its own address on
// lo, and the ClusterIPs routed there, so that they pass the output hook.
func localPath(h *netlink.Handle, addr netip.Addr, services netip.Prefix) error {
	lo, err := h.LinkByName("lo")
	if err != nil {
		return fmt.Errorf("find lo: %w", err)
	}
	if err := addAddress(h, lo, addr); err != nil {
		return err
	}
	// Without a source the kernel takes 0.0.0.0 here: connections succeed and
	// reads hang.
	r := &netlink.Route{LinkIndex: lo.Attrs().Index, Dst: ipNet(services), Scope: netlink.SCOPE_LINK, Src: addr.AsSlice()}
	if err := h.RouteAdd(r); err != nil {
		return fmt.Errorf("route %s to lo: %w", services, err)
	}
	return nil
}

// link joins a node to the fabric and returns the link address of the fabric's
// end. It is called with the fabric's handle; nodeNS is the node's namespace.
func link(fabric *netlink.Handle, nodeNS int, n int, addrs []netip.Addr, gateway func(netip.Addr) netip.Addr) (net.HardwareAddr, error) {
	name := fmt.Sprintf("node%d", n)
	attrs := netlink.NewLinkAttrs()
	attrs.Name = name
	veth := &netlink.Veth{LinkAttrs: attrs, PeerName: uplink, PeerNamespace: netlink.NsFd(nodeNS)}
	if err := fabric.LinkAdd(veth); err != nil {
		return nil, fmt.Errorf("make the link of node %d: %w", n, err)
	}
	l, err := fabric.LinkByName(name)
	if err != nil {
		return nil, fmt.Errorf("find link %s: %w", name, err)
	}
	if err := fabric.LinkSetUp(l); err != nil {
		return nil, fmt.Errorf("set %s up: %w", name, err)
	}
	for _, a := range addrs {
		if err := addAddress(fabric, l, gateway(a)); err != nil {
			return nil, err
		}
	}
	return l.Attrs().HardwareAddr, nil
}

// addAddress gives an interface that is up an address of its own, at once: one of IPv6 is
// not tried out first. The kernel makes the route to such an address when it gets
// round to it; one beside it bridges the time.
func addAddress(h *netlink.Handle, l netlink.Link, a netip.Addr) error {
	addr := &netlink.Addr{IPNet: ipNet(netip.PrefixFrom(a, a.BitLen()))}
	if a.Is6() {
		addr.Flags = unix.IFA_F_NODAD
	}
	if err := h.AddrAdd(l, addr); err != nil {
		return fmt.Errorf("add %s to %s: %w", a, l.Attrs().Name, err)
	}
	if a.Is4() {
		return nil
	}
	r := &netlink.Route{LinkIndex: l.Attrs().Index, Dst: addr.IPNet, Type: unix.RTN_LOCAL, Table: unix.RT_TABLE_LOCAL}
	if err := h.RouteAdd(r); err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("answer locally for %s: %w", a, err)
	}
	return nil
}

// neighbour says for good which link address an IPv6 address of the other end
// has, so that nobody has to ask for it: an end that has just got its address
// does not answer yet, and the next question comes a second later.
func neighbour(h *netlink.Handle, index int, a netip.Addr, at net.HardwareAddr) error {
	if a.Is4() {
		return nil
	}
	n := &netlink.Neigh{LinkIndex: index, Family: unix.AF_INET6, State: netlink.NUD_PERMANENT, IP: a.AsSlice(), HardwareAddr: at}
	if err := h.NeighSet(n); err != nil {
		return fmt.Errorf("name %s at %s: %w", a, at, err)
	}
	return nil
}

// routeToNode lets the fabric reach a node and its pods, in one family.
func routeToNode(fabric *netlink.Handle, n int, addr netip.Addr, pods netip.Prefix, at net.HardwareAddr) error {
	l, err := fabric.LinkByName(fmt.Sprintf("node%d", n))
	if err != nil {
		return fmt.Errorf("find the link of node %d: %w", n, err)
	}
	i := l.Attrs().Index
	if err := neighbour(fabric, i, addr, at); err != nil {
		return err
	}
	for _, r := range routesToNode(i, addr, pods) {
		if err := fabric.RouteAdd(r); err != nil {
			return fmt.Errorf("route %s to node %d: %w", r.Dst, n, err)
		}
	}
	return nil
}

// routesToNode are the fabric's ways to a node and its pods over its link.
func routesToNode(link int, addr netip.Addr, pods netip.Prefix) []*netlink.Route {
	return []*netlink.Route{
		{LinkIndex: link, Dst: ipNet(netip.PrefixFrom(addr, addr.BitLen())), Scope: netlink.SCOPE_LINK},
		{LinkIndex: link, Dst: ipNet(pods), Gw: addr.AsSlice(), Flags: int(netlink.FLAG_ONLINK)},
	}
}

// joinFabric is the node's side of link: its addresses and the ways out. The
// ClusterIPs take the same way: the output hook changes the destination before
// anything leaves, and what no rule catches ends at the fabric as unreachable.
// It returns the link address of the node's end; at is that of the fabric's.
func joinFabric(h *netlink.Handle, addrs []netip.Addr, gateway func(netip.Addr) netip.Addr, at net.HardwareAddr) (net.HardwareAddr, error) {
	l, err := h.LinkByName(uplink)
	if err != nil {
		return nil, fmt.Errorf("find %s: %w", uplink, err)
	}
	if err := h.LinkSetUp(l); err != nil {
		return nil, fmt.Errorf("set %s up: %w", uplink, err)
	}
	for _, a := range addrs {
		if err := addAddress(h, l, a); err != nil {
			return nil, err
		}
	}
	for _, a := range addrs {
		if err := neighbour(h, l.Attrs().Index, gateway(a), at); err != nil {
			return nil, err
		}
		all := netip.PrefixFrom(netip.IPv4Unspecified(), 0)
		if a.Is6() {
			all = netip.PrefixFrom(netip.IPv6Unspecified(), 0)
		}
		r := &netlink.Route{LinkIndex: l.Attrs().Index, Dst: ipNet(all), Gw: gateway(a).AsSlice(), Src: a.AsSlice(), Flags: int(netlink.FLAG_ONLINK)}
		if err := h.RouteAdd(r); err != nil {
			return nil, fmt.Errorf("add the default route by %s: %w", gateway(a), err)
		}
	}
	return l.Attrs().HardwareAddr, nil
}

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}
