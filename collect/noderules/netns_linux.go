package noderules

import (
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"github.com/kconverge/kconverge/collect/netns"
)

// dial opens a netfilter socket in a network namespace (0 or less: that of the
// calling thread).
//
// netlink.Config.NetNS is not used: it enters the namespace and comes back, and
// whoever has rights in a user namespace only, as an ordinary user's lab has,
// may not come back to the namespace that the process started in.
func dial(fd int) (conn *netlink.Conn, err error) {
	if fd <= 0 {
		return netlink.Dial(unix.NETLINK_NETFILTER, nil)
	}
	err = netns.Do(fd, func() (err error) {
		conn, err = netlink.Dial(unix.NETLINK_NETFILTER, nil)
		return err
	})
	return conn, err
}
