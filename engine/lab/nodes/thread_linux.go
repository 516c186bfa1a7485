package nodes

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/kconverge/kconverge/collect/netns"
)

// newNetNS makes a network namespace and runs setup inside. It returns a file
// descriptor that keeps the namespace alive.
func newNetNS(setup func() error) (fd int, err error) {
	err = netns.OnThread(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return &NotAllowedError{Refused: "unshare(CLONE_NEWNET)", Err: err, Fix: fix(err)}
		}
		if fd, err = unix.Open("/proc/thread-self/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0); err != nil {
			return fmt.Errorf("open /proc/thread-self/ns/net: %w", err)
		}
		if err := setup(); err != nil {
			_ = unix.Close(fd)
			return err
		}
		return nil
	})
	if err != nil {
		return -1, err
	}
	return fd, nil
}

// fix tells what would allow namespaces, by what the kernel says it limits.
func fix(err error) string {
	if errors.Is(err, unix.ENOSPC) {
		return "a limit is reached: raise the sysctls user.max_net_namespaces and user.max_user_namespaces"
	}
	return "run as root, or as a user who may make user namespaces" + userNamespaceHint("/proc/sys")
}

// userNamespaceHint names the sysctl that forbids user namespaces, if one does:
// Debian's and Ubuntu's own switches, and the kernel's limit.
func userNamespaceHint(sys string) string {
	for _, s := range []struct{ file, bad, set string }{
		{"kernel/unprivileged_userns_clone", "0", "kernel.unprivileged_userns_clone=1"},
		{"kernel/apparmor_restrict_unprivileged_userns", "1", "kernel.apparmor_restrict_unprivileged_userns=0"},
		{"user/max_user_namespaces", "0", "user.max_user_namespaces=10000"},
	} {
		b, err := os.ReadFile(sys + "/" + s.file)
		if err == nil && strings.TrimSpace(string(b)) == s.bad {
			return " (sysctl " + s.set + " allows it)"
		}
	}
	return ""
}
