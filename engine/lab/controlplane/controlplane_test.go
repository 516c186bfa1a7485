package controlplane

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kconverge/kconverge/engine/lab/process"
)

// patience is how long a condition is awaited: far beyond what anything takes.
const patience = 3 * time.Minute

// built are the programs that testdata/cluster builds.
func built(t *testing.T) *Programs {
	t.Helper()
	p, err := Find(t.Context(), "../../../testdata/cluster/bin", "v1.37.2")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-ctx.Done():
			t.Fatalf("still not: %s", what)
		case <-tick.C:
		}
	}
}

// log is a buffer that can be read while programs write to it.
type log struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *log) Name() string { return "the log of this test" }

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// guard keeps what it is told.
type guard struct {
	mu  sync.Mutex
	all []int
}

func (g *guard) take(pgid int) (done func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.all = append(g.all, pgid)
	return func() {}
}

func (g *guard) groups() []int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.all)
}

func start(t *testing.T, o Options) *ControlPlane {
	t.Helper()
	o.Programs, o.Name, o.PodCIDR, o.ServiceCIDR = built(t), "test", "10.244.0.0/16", "10.96.0.0/12"
	c, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(context.Background()); err != nil {
			t.Errorf("stop: %v", err)
		}
	})
	return c
}

func clientOf(t *testing.T, c *rest.Config) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(c)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func (c *ControlPlane) byName(name string) *process.Process {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.running {
		if p.Name() == name {
			return p
		}
	}
	return nil
}

func TestItIsAWholeControlPlaneThatLeavesNothing(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	t.Setenv("ETCD_LISTEN_CLIENT_URLS", "http://0.0.0.0:2379") // etcd would heed it
	var l log
	var guarded guard
	c := start(t, Options{Log: &l, NoKubelets: "there are no kubelets here", Guard: guarded.take})

	raw, err := c.Kubeconfig()
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(raw)
	if err != nil {
		t.Fatal(err)
	}
	client := clientOf(t, config)
	if v, err := client.Discovery().ServerVersion(); err != nil || v.GitVersion != c.o.Programs.Kubernetes {
		t.Errorf("the API server is of version %v (%v)", v, err)
	}

	// The controllers and the scheduler work: a Deployment becomes pods, and a pod
	// is refused a node for want of one.
	labels := map[string]string{"app": "web"}
	_, err = client.AppsV1().Deployments("default").Create(t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "nginx"}}},
			},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the scheduler has looked at the pod", func() bool {
		pods, err := client.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{LabelSelector: "app=web"})
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range pods.Items {
			for _, k := range p.Status.Conditions {
				if k.Type == corev1.PodScheduled && k.Reason == corev1.PodReasonUnschedulable {
					return true
				}
			}
		}
		return false
	})

	// What only a node could tell is refused here, and nobody is asked.
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}, Status: corev1.NodeStatus{
		Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "198.18.0.1"}}, DaemonEndpoints: corev1.NodeDaemonEndpoints{KubeletEndpoint: corev1.DaemonEndpoint{Port: 10250}},
	}}
	if _, err := client.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "bound"}, Spec: corev1.PodSpec{NodeName: "node-1", Containers: []corev1.Container{{Name: "c", Image: "nginx"}}}}
	if _, err := client.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	admin, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := admin.Get(config.Host + "/api/v1/namespaces/default/pods/bound/log")
	if err != nil {
		t.Fatal(err)
	}
	said, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil || resp.StatusCode != http.StatusInternalServerError || !strings.Contains(string(said), "there are no kubelets here") {
		t.Errorf("the pod's log: %s, %s (%v)", resp.Status, said, err)
	}

	// Nobody gets in without the certificate.
	anonymous := rest.CopyConfig(config)
	anonymous.CertData, anonymous.KeyData = nil, nil
	if _, err := clientOf(t, anonymous).CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{}); !apierrors.IsUnauthorized(err) {
		t.Errorf("anybody is answered %v", err)
	}
	if h, err := rest.HTTPClientFor(anonymous); err != nil {
		t.Error(err)
	} else if resp, err := h.Get(config.Host + "/readyz"); err != nil {
		t.Error(err)
	} else if resp.Body.Close(); resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("anybody is answered /readyz with %s", resp.Status)
	}

	var pids []int
	for _, name := range []string{Etcd, APIServer, ControllerManager, Scheduler} {
		p := c.byName(name)
		if p == nil {
			t.Fatalf("%s does not run", name)
		}
		pids = append(pids, p.PID())
		if !strings.Contains(l.String(), name+": ") && name != Etcd { // which has nothing to warn of
			t.Errorf("%s has nothing in the log", name)
		}
	}
	listening := listeners(t, pids)
	for _, at := range listening {
		if !strings.HasPrefix(at, "127.0.0.1:") {
			t.Errorf("something listens on %s", at)
		}
	}
	if len(listening) != 3 {
		t.Errorf("they listen on %v, want a port for each program but etcd", listening)
	}
	if told := guarded.groups(); len(told) != 4 {
		t.Errorf("the guard was told of %v", told)
	}

	if err := c.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, pid := range pids {
		if _, err := os.Stat(fmt.Sprintf("/proc/%d", pid)); err == nil {
			t.Errorf("process %d is still there", pid)
		}
	}
	if left, err := os.ReadDir(os.Getenv("TMPDIR")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v (%v)", left, err)
	}
	select {
	case <-c.Done():
		t.Error("what was stopped counts as ended by itself")
	default:
	}
}

// listeners are the addresses on which the processes accept TCP connections, from
// /proc (proc_pid_net(5)): state 0A is LISTEN.
func listeners(t *testing.T, pids []int) (out []string) {
	t.Helper()
	inodes := map[string]bool{}
	for _, pid := range pids {
		fds, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
		if err != nil || len(fds) == 0 {
			t.Fatalf("process %d has no descriptors (%v)", pid, err)
		}
		for _, fd := range fds {
			if to, err := os.Readlink(fd); err == nil {
				inodes[strings.TrimSuffix(strings.TrimPrefix(to, "socket:["), "]")] = true
			}
		}
	}
	for _, table := range []string{"tcp", "tcp6"} {
		b, err := os.ReadFile("/proc/net/" + table)
		if errors.Is(err, os.ErrNotExist) {
			continue
		} else if err != nil {
			t.Fatal(err)
		}
		for _, line := range strings.Split(string(b), "\n")[1:] {
			f := strings.Fields(line)
			if len(f) < 10 || f[3] != "0A" || !inodes[f[9]] {
				continue
			}
			addr, port, _ := strings.Cut(f[1], ":")
			ip, err := hex.DecodeString(addr)
			n, perr := strconv.ParseUint(port, 16, 16)
			if err != nil || perr != nil {
				t.Fatalf("cannot read %q", line)
			}
			if len(ip) == 4 {
				out = append(out, fmt.Sprintf("%d.%d.%d.%d:%d", ip[3], ip[2], ip[1], ip[0], n))
			} else {
				out = append(out, fmt.Sprintf("%x:%d", ip, n))
			}
		}
	}
	return out
}

func TestAProgramThatEndsIsNamedWithItsLastLines(t *testing.T) {
	var l log
	c := start(t, Options{Log: &l})
	// A second one cannot have its port, although programs could share it.
	_, number, _ := strings.Cut(strings.TrimPrefix(c.Config().Host, "https://"), ":")
	n, err := strconv.Atoi(number)
	if err != nil {
		t.Fatal(err)
	}
	var taken *PortError
	if _, err := Start(t.Context(), Options{Programs: c.o.Programs, Name: "second", Port: n, PodCIDR: c.o.PodCIDR, ServiceCIDR: c.o.ServiceCIDR}); !errors.As(err, &taken) || !errors.Is(err, syscall.EADDRINUSE) || !strings.Contains(err.Error(), "--port 0") {
		t.Errorf("a second one on port %d: %v", n, err)
	}

	scheduler := c.byName(Scheduler)
	if err := syscall.Kill(scheduler.PID(), syscall.SIGABRT); err != nil { // a crash with a stack
		t.Fatal(err)
	}
	select {
	case <-c.Done():
	case <-time.After(patience):
		t.Fatal("nobody noticed")
	}
	err = c.Err()
	var ended *process.EndedError
	if !errors.As(err, &ended) || ended.Name != Scheduler || len(ended.Last) == 0 {
		t.Fatalf("it says %v", err)
	}
	for _, part := range []string{Scheduler + " ended by itself", "its last lines", ended.Last[0], "the log of this test"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("no %q in %v", part, err)
		}
	}
	if !strings.Contains(l.String(), Scheduler+": SIGABRT") {
		t.Error("the crash is not in the log")
	}
}

func TestAStartThatFailsSaysWhichProgramAndWhyAndLeavesNothing(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	real := built(t)
	dir := t.TempDir()
	for _, name := range []string{Etcd, ControllerManager, Scheduler} {
		if err := os.Symlink(real.path(name), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	script := "#!/bin/sh\necho 'no such luck' >&2\nexit 4\n"
	if err := os.WriteFile(filepath.Join(dir, APIServer), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	var guarded guard
	_, err := Start(t.Context(), Options{
		Programs: &Programs{Dir: dir, Kubernetes: real.Kubernetes, Etcd: real.Etcd}, Name: "test", PodCIDR: "10.244.0.0/16", ServiceCIDR: "10.96.0.0/12",
		Log: io.Discard, Guard: guarded.take,
	})
	if err == nil || !strings.Contains(err.Error(), APIServer+" ended by itself (exit status 4); its last lines: no such luck") {
		t.Errorf("it says %v", err)
	}
	pids := guarded.groups()
	if len(pids) != 2 {
		t.Errorf("processes %v were started, want etcd and the API server", pids)
	}
	for _, pid := range pids {
		if _, err := os.Stat(fmt.Sprintf("/proc/%d", pid)); err == nil {
			t.Errorf("process %d is still there", pid)
		}
	}
	if left, err := os.ReadDir(os.Getenv("TMPDIR")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v (%v)", left, err)
	}
}
