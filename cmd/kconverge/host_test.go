package main

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// newHost gives the home a network namespace of its own as its host, with rules,
// a route and an address in it: the machine's may change by others' doing. It
// returns what nsenter needs to enter it.
func (h *home) newHost(t *testing.T) {
	t.Helper()
	keeper := exec.Command("unshare", "--net", "sh", "-c", `
		ip link set lo up && ip route add 192.0.2.0/24 dev lo && ip -6 route add 2001:db8::/64 dev lo &&
		nft 'add table ip mine; add chain ip mine c { type nat hook output priority 0; }; add rule ip mine c ct state new counter' &&
		echo ready && exec sleep infinity`)
	keeper.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var said, errs buffer
	keeper.Stdout, keeper.Stderr = &said, &errs
	if err := keeper.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = keeper.Process.Kill()
		_ = keeper.Wait()
	})
	eventually(t, "the host is there", func() bool {
		if errs.String() != "" {
			t.Fatal(errs.String())
		}
		return strings.Contains(said.String(), "ready")
	})
	h.inside = []string{"nsenter", fmt.Sprintf("--net=/proc/%d/ns/net", keeper.Process.Pid)}
}

// hostState is everything that the home's host shows of its network: rules,
// links, addresses, routes, rules of routing and every setting.
func (h *home) hostState(t *testing.T) string {
	t.Helper()
	// Without the packets counted, and how many connections are tracked, and
	// what is made up anew for each reader.
	const script = `
		nft --stateless list ruleset; ip -o link; ip -o addr; ip route show table all; ip -6 route show table all; ip rule; ip -6 rule; ip netns
		find /proc/sys/net -type f ! -name nf_conntrack_count ! -name 'tcp_fastopen_key' | sort | while read f; do echo "$f = $(tr '\n' ' ' < $f 2>/dev/null)"; done`
	out, err := h.command("sh", "-c", script).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if s := string(out); strings.Count(s, "\n") < 100 || !strings.Contains(s, "192.0.2.0/24") || !strings.Contains(s, "table ip mine") {
		t.Fatalf("the host shows only\n%s", s)
	}
	return string(out)
}

// made opens the network namespaces that the home's processes are in or hold, but
// for their host's. While they are open here their numbers are nobody else's.
func (h *home) made(t *testing.T) map[string]*os.File {
	t.Helper()
	host, err := h.command("readlink", "/proc/self/ns/net").Output()
	if err != nil {
		t.Fatal(err)
	}
	own, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]*os.File{}
	for _, pid := range h.descendants(t) {
		for to, path := range netNamespaces(t, strconv.Itoa(pid)) {
			if to == own || to == strings.TrimSpace(string(host)) || out[to] != nil {
				continue
			}
			if f, err := os.Open(path); err == nil { // a thread may have ended meanwhile
				t.Cleanup(func() { _ = f.Close() })
				out[to] = f
			}
		}
	}
	return out
}

// netNamespaces are the network namespaces that processes, given as a pattern,
// have threads in or hold, each with a file that leads there.
func netNamespaces(t *testing.T, pids string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, pattern := range []string{"ns/net", "task/*/ns/net", "fd/*"} {
		found, err := filepath.Glob("/proc/" + pids + "/" + pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range found {
			if strings.HasPrefix(f, fmt.Sprintf("/proc/%d/", os.Getpid())) {
				continue
			}
			if to, err := os.Readlink(f); err == nil && strings.HasPrefix(to, "net:[") {
				out[to] = f
			}
		}
	}
	return out
}

// differs shows the lines in which two states of the host differ.
func differs(before, after string) string {
	var out []string
	was, is := strings.Split(before, "\n"), strings.Split(after, "\n")
	for _, l := range was {
		if !slices.Contains(is, l) {
			out = append(out, "- "+l)
		}
	}
	for _, l := range is {
		if !slices.Contains(was, l) {
			out = append(out, "+ "+l)
		}
	}
	return strings.Join(out, "\n")
}

func TestTheHostIsTheSameToTheByteAfterALabHoweverItEnds(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(t *testing.T, h *home, p *process) error
	}{
		{"stopped", func(_ *testing.T, _ *home, p *process) error { return p.cmd.Process.Signal(syscall.SIGTERM) }},
		// The Go runtime ends it as it does after a panic that nobody recovers.
		{"crashed", func(t *testing.T, h *home, p *process) error {
			return syscall.Kill(h.below(t, p.cmd.Process.Pid), syscall.SIGABRT)
		}},
		{"killed", func(t *testing.T, h *home, p *process) error {
			return syscall.Kill(h.below(t, p.cmd.Process.Pid), syscall.SIGKILL)
		}},
		{"killed with its guard", func(t *testing.T, h *home, p *process) error {
			for _, pid := range h.descendants(t) {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
			return nil
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHome(t)
			h.newHost(t)
			before := h.hostState(t)
			p := h.lab(t, "--nodes", "2", "--seed")
			h.kubectl(t, "rollout", "status", "deployment/web")
			made := h.made(t)
			if len(made) < 3 { // two nodes and what connects them
				t.Fatalf("the lab has the namespaces %v: the test would prove nothing", made)
			}
			if during := h.hostState(t); during != before {
				t.Errorf("while the lab runs the host differs:\n%s", differs(before, during))
			}
			if err := c.end(t, h, p); err != nil {
				t.Fatal(err)
			}
			p.wait()
			eventually(t, "every process is gone", func() bool { return len(h.descendants(t)) == 0 })
			eventually(t, "every namespace of the lab is gone", func() bool {
				for held := range netNamespaces(t, "[0-9]*") {
					if made[held] != nil {
						return false
					}
				}
				return true
			})
			if after := h.hostState(t); after != before {
				t.Errorf("afterwards the host differs:\n%s", differs(before, after))
			}
		})
	}
}

func TestTwoLabsAtOnceDoNotTouchEachOther(t *testing.T) {
	first, second := newHome(t), newHome(t)
	first.newHost(t)
	second.inside = first.inside
	p := first.lab(t, "--nodes", "2", "--seed")
	first.kubectl(t, "rollout", "status", "deployment/web")
	nodes := first.made(t)
	rules := func() (all string) {
		for _, n := range slices.Sorted(maps.Keys(nodes)) {
			path := fmt.Sprintf("--net=/proc/%d/fd/%d", os.Getpid(), nodes[n].Fd())
			out, err := exec.Command("nsenter", path, "sh", "-c", "nft --stateless list ruleset; ip -o addr; ip route show table all").CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			all += "# " + n + "\n" + string(out)
		}
		return all
	}
	// The rules are written up to a second after the endpoints.
	eventually(t, "both nodes of the first lab route to all four endpoints", func() bool {
		return strings.Count(rules(), "numgen random mod 4 map") == 2
	})
	before := rules()
	objects := func() string { return first.kubectl(t, "get", "pods,services,endpointslices,nodes", "-o", "name") }
	had := objects()

	q := second.lab(t, "--nodes", "2", "--seed")
	second.kubectl(t, "rollout", "status", "deployment/web")
	second.kubectl(t, "scale", "deployment/web", "--replicas=7")
	second.kubectl(t, "rollout", "status", "deployment/web")
	theirs := second.made(t)
	if len(theirs) != len(nodes) {
		t.Errorf("the second lab has %d namespaces, the first %d", len(theirs), len(nodes))
	}
	for n := range theirs {
		if nodes[n] != nil {
			t.Errorf("both labs have %s", n)
		}
	}
	if err := q.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	q.wait()

	if after := rules(); after != before {
		t.Errorf("the first lab's nodes differ:\n%s", differs(before, after))
	}
	if has := objects(); has != had {
		t.Errorf("the first lab had\n%s\nand has\n%s", had, has)
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	p.wait()
}
