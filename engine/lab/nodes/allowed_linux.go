package nodes

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Allowed tries whether Start may make n nodes here: nil, or a *NotAllowedError.
// It makes a namespace and gives it up.
func Allowed(n int) error {
	fd, err := newNetNS(func() error { return nil })
	if err != nil {
		return err
	}
	if err := closeNS(fd, "a trial"); err != nil {
		return err
	}
	// One more for the network between the nodes.
	b, err := os.ReadFile("/proc/sys/user/max_net_namespaces")
	if err != nil {
		return nil // no such limit
	}
	if limit, err := strconv.Atoi(strings.TrimSpace(string(b))); err == nil && limit < n+1 {
		return &NotAllowedError{
			Refused: fmt.Sprintf("%d network namespaces where user.max_net_namespaces is %d", n+1, limit), Err: unix.ENOSPC, Fix: fix(unix.ENOSPC),
		}
	}
	return nil
}

// errKernelNoIPv6 is said where the kernel was built without IPv6, or started
// with ipv6.disable=1.
var errKernelNoIPv6 = errors.New("this kernel has no IPv6 (there is no " + procNet + "/ipv6/conf)")

// NoIPv6 tries whether nodes may be dual-stack here: nil, or why not. It makes a
// namespace, uses addresses of IPv6 there as a node does, and gives it up.
func NoIPv6() error {
	if _, err := os.Stat(procNet + "/ipv6/conf"); errors.Is(err, os.ErrNotExist) {
		return errKernelNoIPv6
	}
	fd, err := newNetNS(func() error {
		if err := allowIPv6(); err != nil {
			return err
		}
		h, err := netlink.NewHandle(unix.NETLINK_ROUTE)
		if err != nil {
			return fmt.Errorf("open a route socket: %w", err)
		}
		defer h.Close()
		if err := setUp(h, PodCIDRv6); err != nil {
			return err
		}
		if err := localPath(h, NodeCIDRv6.Addr().Next(), ServiceCIDRv6); err != nil {
			return err
		}
		ip := PodCIDRv6.Addr().Next()
		c := listenConfig(ip)
		l, err := c.Listen(context.Background(), "tcp", netip.AddrPortFrom(ip, 0).String())
		if err != nil {
			return err
		}
		return l.Close()
	})
	if err != nil {
		return fmt.Errorf("IPv6 cannot be used in network namespaces here: %w", err)
	}
	return closeNS(fd, "a trial")
}
