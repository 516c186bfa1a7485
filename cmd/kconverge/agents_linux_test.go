package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/engine/report"
)

// agentProgram builds the node agent.
func agentProgram(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kconverge-agent")
	build := exec.Command("go", "build", "-o", path, "../kconverge-agent")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return path
}

// namespaces finds the network namespaces of a lab's nodes, by the nodes'
// addresses, as paths that nsenter takes.
func (h *home) namespaces(t testing.TB, lab *process) map[string]string {
	t.Helper()
	nodes, names := map[string]string{}, map[string]bool{} // address -> name
	for line := range strings.Lines(h.kubectl(t, "get", "nodes", "-o", `jsonpath={range .items[*]}{.metadata.name} {.status.addresses[?(@.type=="InternalIP")].address}{"\n"}{end}`)) {
		if f := strings.Fields(line); len(f) > 1 {
			names[f[0]] = true
			for _, addr := range f[1:] {
				nodes[addr] = f[0]
			}
		}
	}
	guard := strconv.Itoa(lab.cmd.Process.Pid)
	tasks, err := filepath.Glob("/proc/" + guard + "/task/*/children")
	if err != nil {
		t.Fatal(err)
	}
	out, seen := map[string]string{}, map[string]bool{}
	for _, file := range tasks {
		children, _ := os.ReadFile(file)
		for _, child := range strings.Fields(string(children)) {
			own, _ := os.Readlink("/proc/" + child + "/ns/net")
			seen[own] = true
			fds, _ := filepath.Glob("/proc/" + child + "/fd/*")
			for _, fd := range fds {
				ns, err := os.Readlink(fd)
				if err != nil || !strings.HasPrefix(ns, "net:[") || seen[ns] {
					continue
				}
				seen[ns] = true
				addrs, err := exec.Command("nsenter", "--net="+fd, "ip", "-o", "address").Output()
				if err != nil {
					continue
				}
				for addr, name := range nodes {
					if strings.Contains(string(addrs), " "+addr+"/") {
						out[name] = fd
					}
				}
			}
		}
	}
	if len(out) != len(names) || len(out) == 0 {
		t.Fatalf("found the namespaces of %v, the nodes are %v", out, nodes)
	}
	return out
}

// agents starts an agent in the namespace of each of a lab's nodes and returns
// the arguments by which kconverge reads what they print. They speak often, so that
// tests need not wait.
func (h *home) agents(t testing.TB, lab *process) (args []string) {
	t.Helper()
	return h.agentsWith(t, lab, "--heartbeat", "500ms", "--keyframe", "2s")
}

// agentsWith is agents with flags of their own.
func (h *home) agentsWith(t testing.TB, lab *process, flags ...string) (args []string) {
	t.Helper()
	program := agentProgram(t)
	for name, ns := range h.namespaces(t, lab) {
		file := filepath.Join(h.dir, name+".log")
		out, err := os.Create(file)
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("nsenter", append([]string{"--net=" + ns, program, "--node", name}, flags...)...)
		cmd.Stdout, cmd.Stderr = out, os.Stderr
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		out.Close()
		t.Cleanup(func() {
			_ = cmd.Process.Signal(syscall.SIGTERM)
			_ = cmd.Wait()
		})
		args = append(args, "--node-log", name+"="+file)
	}
	return args
}

// stop ends a process as a person would, and returns its exit code.
func (p *process) stop() int {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	return p.wait()
}

// arrival is one endpoint's arrival in one node's rules.
type arrival struct {
	path, node string
}

func arrivals(s *report.Service) map[arrival]report.NodeHop {
	out := map[arrival]report.NodeHop{}
	for i := range s.Paths {
		if p := &s.Paths[i]; p.Rules != nil && p.Endpoint.IP != "" {
			for node, h := range p.Rules.ByNode {
				if h.Status == "arrived" {
					out[arrival{p.ID, node}] = h
				}
			}
		}
	}
	return out
}

// A second process that is given the kubeconfig and the lines of agents in the
// nodes' namespaces sees each arrival in the same generation as the lab itself,
// at the same time.
func TestAgentsInTheNodesNamespacesSeeWhatTheLabSees(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("enters the network namespaces of a lab's nodes: needs root")
	}
	h := newHome(t)
	lab := h.lab(t, "--nodes", "2", "--output", "json")
	logs := h.agents(t, lab)
	record := filepath.Join(h.dir, "record")
	watch := h.start(t, append([]string{"watch", "--headless", "--output", "json", "--record", record, "--kubeconfig", h.kubeconfig()}, logs...)...)
	for _, src := range []string{"rules/node-1", "rules/node-2", "kube/endpointslices", "kube/pods"} {
		eventually(t, src+" has synced", func() bool {
			return slices.ContainsFunc(recorded(t, record), func(e collect.Event) bool {
				s, ok := e.Payload.(*collect.SourceState)
				return ok && string(e.Source) == src && s.State == collect.SourceSynced
			})
		})
	}
	wait := func() {
		h.kubectl(t, "rollout", "status", "deployment/web")
		code, _, stderr := h.run(t, nil, append([]string{"wait", "svc/web", "--kubeconfig", h.kubeconfig()}, logs...)...)
		if code != exitOK {
			t.Fatalf("wait ended with %d: %s", code, stderr)
		}
	}
	h.kubectl(t, "create", "deployment", "web", "--image=nginx", "--replicas=4")
	h.kubectl(t, "expose", "deployment", "web", "--port=80", "--target-port=8080")
	wait()
	for _, n := range []int{7, 2, 6} {
		h.kubectl(t, "scale", "deployment/web", "--replicas="+strconv.Itoa(n))
		wait()
	}
	// Both must have heard what the third process waited for.
	eventually(t, "watch has the last line of the agents", func() bool {
		n := 0
		for _, e := range recorded(t, record) {
			if v, ok := e.Payload.(*collect.Vouch); ok && v.How == "heartbeat" {
				n++
			}
		}
		return n > 20
	})
	if code := watch.stop(); code != exitOK {
		t.Errorf("watch ended with %d: %s", code, watch.stderr.String())
	}
	lab.stop()
	theirs, ours := web(t, parse(t, watch.stdout.String())), web(t, parse(t, lab.stdout.String()))
	agree(t, theirs, 6, 2)
	ref := arrivals(ours)
	var apart []float64
	type generation struct{ node, note string }
	all, outside := map[generation]bool{}, map[generation]bool{}
	for key, got := range arrivals(theirs) {
		want, ok := ref[key]
		if !ok {
			t.Errorf("%v was not seen by the lab", key)
			continue
		}
		if got.Note != want.Note {
			t.Errorf("%v: %s, but the lab saw %s", key, got.Note, want.Note)
		}
		gen := generation{key.node, got.Note}
		all[gen] = true
		d := got.At.Sub(*want.At)
		apart = append(apart, float64(d.Abs())/float64(time.Millisecond))
		// Two listeners on one kernel, each with its own bounds of one moment.
		within := func(a, b *report.NodeHop) bool {
			from := *a.At
			if a.NotBefore != nil {
				from = *a.NotBefore
			}
			return from.Sub(*b.At) <= time.Duration((a.ErrorMS+b.ErrorMS)*float64(time.Millisecond))
		}
		if !within(&got, &want) || !within(&want, &got) {
			outside[gen] = true
			t.Logf("%v: %s apart: %s not before %v ±%.1f ms, by the lab %s not before %v ±%.1f ms", key, d, got.At, got.NotBefore, got.ErrorMS, want.At, want.NotBefore, want.ErrorMS)
		}
		if d.Abs() > time.Second {
			t.Errorf("%v: %s apart: not the same moment", key, d)
		}
	}
	// The kernel hands one listener its copy after the other's, and whoever writes
	// the rules may be kept from running in between; so may a virtual machine's
	// processor, unseen by the kernel. No listener can know of either.
	if len(outside) > len(all)/4 {
		t.Errorf("%d of %d generations are told apart by more than both say of themselves", len(outside), len(all))
	}
	if len(apart) < 20 || len(apart) != len(ref) {
		t.Fatalf("%d arrivals by the agents' lines, %d by the lab", len(apart), len(ref))
	}
	slices.Sort(apart)
	within := 0
	for _, d := range apart {
		if d <= 5 {
			within++
		}
	}
	t.Log(fmt.Sprintf("%d arrivals, apart by median %.2f ms, at most %.2f ms, %d within 5 ms", len(apart), apart[len(apart)/2], apart[len(apart)-1], within))
}
