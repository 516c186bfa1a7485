package nodes

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/kconverge/kconverge/collect/netns"
)

// role is set in processes that a test starts of this test binary.
const role = "NODES_TEST_ROLE"

func TestMain(m *testing.M) {
	if os.Getenv(role) == "serve" {
		os.Exit(serveUntilKilled())
	}
	os.Exit(m.Run())
}

// serveUntilKilled makes a cluster with open pods, prints its namespaces and
// stays.
func serveUntilKilled() int {
	c, err := Start(context.Background(), Options{Count: 3})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	for _, n := range c.Nodes() {
		ips, err := n.Allocate("u")
		if err == nil {
			err = n.Listen("u"+n.Name(), "web", ips, []int32{80})
		}
		if err != nil {
			fmt.Println(err)
			return 1
		}
	}
	for _, fd := range append([]int{c.fabric}, c.nodes[0].ns, c.nodes[1].ns, c.nodes[2].ns) {
		name, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
		if err != nil {
			fmt.Println(err)
			return 1
		}
		fmt.Println(name)
	}
	fmt.Println("ready")
	_, _ = io.Copy(io.Discard, os.Stdin)
	return 0
}

// namespaces lists the network namespaces that any process has threads in or
// holds open.
func namespaces(t *testing.T) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	for _, pattern := range []string{"/proc/[0-9]*/task/[0-9]*/ns/net", "/proc/[0-9]*/fd/*"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			// Processes and descriptors come and go meanwhile.
			if name, err := os.Readlink(f); err == nil && strings.HasPrefix(name, "net:[") {
				out[name] = true
			}
		}
	}
	return out
}

func TestAKilledProcessLeavesNoNamespaceBehind(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe)
	cmd.Env = append(os.Environ(), role+"=serve")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stdin.Close() }()
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var made []string
	for s := bufio.NewScanner(stdout); s.Scan() && s.Text() != "ready"; {
		made = append(made, s.Text())
	}
	if len(made) != 4 {
		t.Fatalf("the process printed %q", made)
	}
	there := namespaces(t)
	for _, n := range made {
		if !there[n] {
			t.Fatalf("%s is not to be found while the process lives: the test would prove nothing", n)
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Fatal("the process was not killed")
	}
	left := func(context.Context) (bool, error) {
		now := namespaces(t)
		return !slices.ContainsFunc(made, func(n string) bool { return now[n] }), nil
	}
	if err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, 30*time.Second, true, left); err != nil {
		t.Errorf("namespaces %v are still held", made)
	}
}

// hostNetwork is what the test's own namespace shows of rules, links, addresses,
// routes and settings.
func hostNetwork(t *testing.T) string {
	t.Helper()
	var out strings.Builder
	for _, args := range [][]string{
		{"nft", "list", "ruleset"},
		{"ip", "-o", "link"}, {"ip", "-o", "addr"}, {"ip", "route", "show", "table", "all"}, {"ip", "-6", "route", "show", "table", "all"}, {"ip", "rule"}, {"ip", "netns"},
	} {
		b, err := exec.CommandContext(t.Context(), args[0], args[1:]...).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %v %s", args, err, b)
		}
		fmt.Fprintf(&out, "# %v\n%s", args, b)
	}
	for _, s := range []string{"ipv4/ip_forward", "ipv4/conf/all/rp_filter", "ipv4/conf/default/rp_filter", "ipv6/conf/default/disable_ipv6", "ipv6/conf/default/accept_dad", "ipv6/conf/all/forwarding"} {
		b, err := os.ReadFile("/proc/sys/net/" + s)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		fmt.Fprintf(&out, "%s = %s", s, b)
	}
	return out.String()
}

func TestTheHostIsNotTouched(t *testing.T) {
	if os.Getenv(role) != "host" {
		// The machine's own network may change under the test by others'
		// doing: run it in a process whose host is a namespace of its own.
		host, err := newNetNS(func() error { return nil })
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = unix.Close(host) }()
		err = netns.Do(host, func() error {
			cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.v", "-test.run=^TestTheHostIsNotTouched$")
			cmd.Env = append(os.Environ(), role+"=host")
			out, err := cmd.CombinedOutput()
			if err == nil && !strings.Contains(string(out), "--- PASS") {
				err = errors.New("the test did not run")
			}
			if err != nil {
				return fmt.Errorf("%w\n%s", err, out)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		return
	}
	for _, args := range [][]string{{"ip", "link", "set", "lo", "up"}, {"ip", "route", "add", "192.0.2.0/24", "dev", "lo"}, {"nft", "add table ip mine"}} {
		if out, err := exec.CommandContext(t.Context(), args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v %s", args, err, out)
		}
	}
	before := hostNetwork(t)
	for _, path := range []Path{PathRouted, PathLocal} {
		c := startCluster(t, Options{Count: 3, Path: path, DualStack: true})
		n := c.Nodes()[0]
		ips, err := n.Allocate("u")
		if err != nil {
			t.Fatal(err)
		}
		if err := n.Listen("u", "web", ips, []int32{80}); err != nil {
			t.Fatal(err)
		}
		if _, err := n.Exec(t.Context(), "nft", "add table ip kube-proxy"); err != nil {
			t.Fatal(err)
		}
		if during := hostNetwork(t); during != before {
			t.Errorf("%s: the host's network is another while the cluster runs:\n%s\nbefore:\n%s", path, during, before)
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if after := hostNetwork(t); after != before {
		t.Errorf("the host's network is another afterwards:\n%s\nbefore:\n%s", after, before)
	}
}

func TestTheProcessStaysInItsOwnNamespace(t *testing.T) {
	before, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	c := startCluster(t, Options{Count: 2})
	// Many at once, so that some goroutine starts on the first thread.
	errs := make(chan error)
	for range 50 {
		go func() {
			errs <- c.Nodes()[0].Do(func() error {
				if unix.Gettid() == unix.Getpid() {
					return errors.New("the process's first thread was taken into a node")
				}
				inside, err := os.Readlink("/proc/thread-self/ns/net")
				if err == nil && inside == before {
					err = errors.New("the thread is not inside the node")
				}
				return err
			})
		}()
	}
	for range 50 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if after, err := os.Readlink("/proc/self/ns/net"); err != nil || after != before {
		t.Errorf("the process is in %s, was in %s (%v)", after, before, err)
	}
}

func TestItAllWorksAsRootOfAUserNamespaceToo(t *testing.T) {
	if os.Getenv(role) != "" {
		t.Skip("this is that process")
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe, "-test.v", "-test.run=^(TestEveryNodeReachesEveryPodOnItsDeclaredPort|TestPodsListenOnTargetPortsAsTheyChange|TestTheProcessStaysInItsOwnNamespace)$")
	cmd.Env = append(os.Environ(), role+"=user-namespace")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if n := strings.Count(string(out), "\n--- PASS"); n != 3 {
		t.Errorf("%d tests passed, want 3:\n%s", n, out)
	}
}

func TestWithoutPermissionTheErrorNamesTheWayOut(t *testing.T) {
	err := fmt.Errorf("make the fabric: %w", &NotAllowedError{Refused: "unshare(CLONE_NEWNET)", Err: unix.EPERM, Fix: fix(unix.EPERM)})
	var refused *NotAllowedError
	if !errors.As(err, &refused) || !errors.Is(err, unix.EPERM) || !strings.Contains(err.Error(), "run as root") {
		t.Errorf("%v", err)
	}
	if f := fix(unix.ENOSPC); !strings.Contains(f, "user.max_net_namespaces") {
		t.Errorf("a limit: %q", f)
	}
	sys := t.TempDir()
	if h := userNamespaceHint(sys); h != "" {
		t.Errorf("nothing forbids it: %q", h)
	}
	if err := os.MkdirAll(sys+"/kernel", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(sys+"/kernel/apparmor_restrict_unprivileged_userns", []byte("1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if h := userNamespaceHint(sys); !strings.Contains(h, "apparmor_restrict_unprivileged_userns=0") {
		t.Errorf("hint %q does not name the sysctl", h)
	}
}

func TestAnOrdinaryUserIsRefusedWithTheTypedError(t *testing.T) {
	if os.Getenv(role) == "ordinary" {
		_, err := Start(t.Context(), Options{Count: 1})
		var refused *NotAllowedError
		if !errors.As(err, &refused) || !errors.Is(err, unix.EPERM) {
			t.Errorf("got %v, want a NotAllowedError", err)
		}
		return
	}
	// The test binary lies where only its owner may look; hand it over open.
	exe, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = exe.Close() }()
	cmd := exec.CommandContext(t.Context(), "/proc/self/fd/3", "-test.v", "-test.run=^TestAnOrdinaryUserIsRefusedWithTheTypedError$")
	cmd.ExtraFiles = []*os.File{exe}
	cmd.Env = append(os.Environ(), role+"=ordinary")
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS") {
		t.Fatalf("%v\n%s", err, out)
	}
}

func TestOptionsThatCannotWorkAreRefused(t *testing.T) {
	for name, o := range map[string]Options{
		"no node":             {},
		"too many":            {Count: MaxNodes + 1},
		"a name twice":        {Names: []string{"a", "a"}},
		"an empty name":       {Names: []string{""}},
		"a small pod range":   {Count: 1, PodCIDR: prefix("10.244.0.0/24")},
		"an IPv6 pod range":   {Count: 1, PodCIDR: prefix("fd00::/16")},
		"overlapping ranges":  {Count: 1, PodCIDR: prefix("10.96.0.0/16")},
		"an unknown path":     {Count: 1, Path: "tunnel"},
		"nodes and pods same": {Count: 1, NodeCIDR: prefix("10.244.0.0/16")},
	} {
		if c, err := Start(t.Context(), o); err == nil {
			t.Errorf("%s: accepted", name)
			_ = c.Close()
		}
	}
}

func prefix(s string) netip.Prefix { return netip.MustParsePrefix(s) }
