package rulesync

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/collect/netns"
)

// endFlows deletes the stale UDP entries of the connection tracking of a network
// namespace, so that a client that keeps its socket is sent to an endpoint that
// there is. It returns how many went.
func endFlows(ns int, families []collect.Family, f flows) (ended int, err error) {
	if len(f.frontends) == 0 && len(f.nodePorts) == 0 {
		return 0, nil
	}
	err = netns.Do(ns, func() error {
		h := &netlink.Handle{} // opens its sockets on this thread
		var errs []error
		for _, family := range families {
			inet := netlink.InetFamily(unix.AF_INET)
			if family == collect.IPv6 {
				inet = unix.AF_INET6
			}
			for try := 1; ; try++ {
				n, err := h.ConntrackDeleteFilters(netlink.ConntrackTable, inet, f)
				ended += int(n)
				// A dump that was interrupted is part of one; what was found is
				// gone already.
				if errors.Is(err, netlink.ErrDumpInterrupted) && try < tries {
					continue
				}
				if err != nil {
					errs = append(errs, fmt.Errorf("end stale UDP flows of %s: %w", family, err))
				}
				break
			}
		}
		return errors.Join(errs...)
	})
	return ended, err
}

// listenIn opens a listener inside a network namespace.
func listenIn(ns int, addr netip.AddrPort) (l net.Listener, err error) {
	err = netns.Do(ns, func() error {
		l, err = net.Listen("tcp", addr.String())
		return err
	})
	return l, err
}

// MatchConntrackFlow implements netlink.CustomConntrackFilter.
func (f flows) MatchConntrackFlow(flow *netlink.ConntrackFlow) bool {
	return flow.Forward.Protocol == unix.IPPROTO_UDP &&
		f.stale(flowEnd(flow.Forward.DstIP, flow.Forward.DstPort), flowEnd(flow.Reverse.SrcIP, flow.Reverse.SrcPort))
}

func flowEnd(ip net.IP, port uint16) netip.AddrPort {
	a, _ := netip.AddrFromSlice(ip)
	return netip.AddrPortFrom(a.Unmap(), port)
}
