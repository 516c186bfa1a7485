package nodes

import (
	"fmt"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/kconverge/kconverge/collect/netns"
)

// Cut takes the node off the network, or puts it back: meanwhile packets to it and to
// its pods vanish in the fabric, as those to a machine without power do. Its own
// namespace, with its rules and listeners, stays. Without links between the nodes
// (PathLocal) packets vanish in each of the other nodes.
func (n *Node) Cut(off bool) error {
	c := n.cluster
	if c.path == PathRouted {
		return netns.Do(c.fabric, func() error { return n.cutFabric(off) })
	}
	for _, other := range c.nodes {
		if other == n {
			continue
		}
		if err := other.Do(func() error { return n.cutLocal(off) }); err != nil {
			return err
		}
	}
	return nil
}

func (n *Node) cutFabric(off bool) error {
	h, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return fmt.Errorf("open a route socket: %w", err)
	}
	defer h.Close()
	l, err := h.LinkByName(fmt.Sprintf("node%d", n.number))
	if err != nil {
		return fmt.Errorf("find the link of node %s: %w", n.name, err)
	}
	for i, a := range n.addrs {
		if err := n.redirect(h, routesToNode(l.Attrs().Index, a, n.pods[i]), off); err != nil {
			return err
		}
	}
	return nil
}

// redirect takes the routes away and puts ones in their place that lead nowhere, or
// the other way round. IPv6 would keep both, so one goes first.
func (n *Node) redirect(h *netlink.Handle, routes []*netlink.Route, off bool) error {
	for _, way := range routes {
		hole := &netlink.Route{Dst: way.Dst, Type: unix.RTN_BLACKHOLE}
		from, to := hole, way
		if off {
			from, to = way, hole
		}
		if err := h.RouteDel(from); err != nil {
			return fmt.Errorf("take the route to %s of node %s away: %w", way.Dst, n.name, err)
		}
		if err := h.RouteAdd(to); err != nil {
			return fmt.Errorf("route %s of node %s: %w", way.Dst, n.name, err)
		}
	}
	return nil
}

// cutLocal works in the namespace of another node, which answers for the pods of all.
func (n *Node) cutLocal(off bool) error {
	h, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return fmt.Errorf("open a route socket: %w", err)
	}
	defer h.Close()
	do := h.RouteDel
	if off {
		do = h.RouteAdd
	}
	for _, p := range n.pods {
		if err := do(&netlink.Route{Dst: ipNet(p), Type: unix.RTN_BLACKHOLE, Table: unix.RT_TABLE_LOCAL}); err != nil {
			return fmt.Errorf("route %s of node %s: %w", p, n.name, err)
		}
	}
	return nil
}
