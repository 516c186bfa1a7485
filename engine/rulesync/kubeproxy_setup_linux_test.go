package rulesync_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/kconverge/kconverge/engine/lab/apiserver"
	"github.com/kconverge/kconverge/engine/lab/nodes"
)

// stopPatience is how long a program may take to end before it is killed.
const stopPatience = 10 * time.Second

func startProxyAPI(t *testing.T) *apiserver.Server {
	t.Helper()
	s, err := apiserver.Start(t.Context(), apiserver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), proxyPatience)
		defer cancel()
		if err := s.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	return s
}

// program returns the path of a real Kubernetes program and builds it when it
// is missing.
func program(t *testing.T, name string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "../../testdata/cluster/build.sh", name)
	cmd.Stderr = os.Stderr // building takes minutes: say so
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("build %s: %v", name, err)
	}
	return filepath.Join(strings.TrimSpace(string(out)), name)
}

// proxyKind is which kube-proxy runs, and how.
type proxyKind struct {
	program string // of testdata/cluster
	mode    string // kube-proxy's own word
	// iptables is the program that it finds as every iptables command: the
	// one for nf_tables or the legacy one. Only for mode iptables.
	iptables string
}

// startKubeProxy runs the real kube-proxy as the node, in the node's namespace,
// until the test ends. It returns a context that ends with kube-proxy, and the
// file of its log.
func startKubeProxy(t *testing.T, n *nodes.Node, server *apiserver.Server) (context.Context, string) {
	t.Helper()
	alive, log, _ := startProxyOfKind(t, n, server, proxyKind{program: "kube-proxy", mode: "nftables"})
	return alive, log
}

// startProxyOfKind is startKubeProxy for any kind. The returned function ends
// kube-proxy before the test's end.
func startProxyOfKind(t *testing.T, n *nodes.Node, server *apiserver.Server, kind proxyKind) (context.Context, string, func()) {
	t.Helper()
	path := program(t, kind.program)
	logFile, err := os.Create(filepath.Join(t.TempDir(), "kube-proxy.log"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = logFile.Close() })
	cmd := exec.Command(path, "--config", kind.config(t, proxyConfig(t, n, proxyKubeconfig(t, server, relayInto(t, n, server)))))
	cmd.Env = append(os.Environ(), "PATH="+kind.path(t)+":"+os.Getenv("PATH"))
	cmd.Stdout, cmd.Stderr = logFile, logFile
	// Should the test be killed, kube-proxy goes with it. The signal is sent
	// when the thread that started the program ends, so the thread stays.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	alive, cancel := context.WithCancelCause(context.Background())
	started, ended := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(ended)
		cancel(n.Do(func() error {
			err := cmd.Start()
			started <- err
			if err != nil {
				return err
			}
			return fmt.Errorf("kube-proxy ended: %w", cmp.Or(cmd.Wait(), errors.New("exit status 0")))
		}))
	}()
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	stop := sync.OnceFunc(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		kill := time.AfterFunc(stopPatience, func() { _ = cmd.Process.Kill() })
		defer kill.Stop()
		<-ended
	})
	t.Cleanup(stop)
	return alive, logFile.Name(), stop
}

// path is a folder in which the commands of iptables are those of the kind.
func (k proxyKind) path(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if k.iptables == "" {
		return dir
	}
	program, err := exec.LookPath(k.iptables)
	if err != nil {
		t.Fatalf("%v: make deps installs it", err)
	}
	for _, name := range []string{"iptables", "iptables-save", "iptables-restore", "ip6tables", "ip6tables-save", "ip6tables-restore"} {
		if err := os.Symlink(program, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// config changes a configuration of nftables mode to the kind's mode.
func (k proxyKind) config(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	mode := fmt.Sprintf("mode: %s\niptables: {minSyncPeriod: %s}\n", k.mode, proxyPeriod)
	text = bytes.Replace(text, []byte("mode: nftables\n"), []byte(mode), 1)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// proxyConfig writes kube-proxy's configuration; the shortest period between
// syncs has no flag in nftables mode.
func proxyConfig(t *testing.T, n *nodes.Node, kubeconfig string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kube-proxy.yaml")
	text := fmt.Sprintf(`apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: nftables
hostnameOverride: %s
clusterCIDR: %s,%s
clientConnection: {kubeconfig: %q}
nftables: {minSyncPeriod: %s}
# Limits of the whole machine are left alone.
conntrack: {maxPerCore: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}
`, n.Name(), nodes.DefaultPodCIDR, nodes.PodCIDRv6, kubeconfig, proxyPeriod)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// proxyKubeconfig writes a kubeconfig for the server as reached at addr.
func proxyKubeconfig(t *testing.T, server *apiserver.Server, addr string) string {
	t.Helper()
	raw, err := server.Kubeconfig()
	if err != nil {
		t.Fatal(err)
	}
	c, err := clientcmd.Load(raw)
	if err != nil {
		t.Fatal(err)
	}
	for _, cluster := range c.Clusters {
		cluster.Server = "https://" + addr
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*c, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// relayInto makes the API server, which listens on the host's loopback, reachable
// on the node's: the listening socket is opened inside the namespace, the
// connections onwards are made outside. It returns the address inside.
func relayInto(t *testing.T, n *nodes.Node, server *apiserver.Server) string {
	t.Helper()
	u, err := url.Parse(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	var l net.Listener
	if err := n.Do(func() (err error) {
		l, err = net.Listen("tcp", "127.0.0.1:0")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var open sync.WaitGroup
	open.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return // closed
			}
			open.Go(func() { pipe(ctx, in, u.Host) })
		}
	})
	t.Cleanup(func() {
		cancel()
		_ = l.Close()
		open.Wait()
	})
	return l.Addr().String()
}

// pipe carries one connection to addr until either end closes or ctx ends.
func pipe(ctx context.Context, in net.Conn, addr string) {
	defer in.Close()
	out, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return // seen by the client as a closed connection
	}
	defer out.Close()
	stop := context.AfterFunc(ctx, func() { _ = in.Close(); _ = out.Close() })
	defer stop()
	var both sync.WaitGroup
	both.Go(func() { _, _ = io.Copy(out, in); _ = out.Close() })
	both.Go(func() { _, _ = io.Copy(in, out); _ = in.Close() })
	both.Wait()
}

// tail is the end of a log.
func tail(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	lines := bytes.SplitAfter(b, []byte("\n"))
	return "the end of kube-proxy's log:\n" + string(bytes.Join(lines[max(0, len(lines)-20):], nil))
}
