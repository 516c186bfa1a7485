package main

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/base32"
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

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/collect/agent"
)

// node is a network namespace with many Services in kube-proxy's layout.
type node struct {
	name string
	conn *nftables.Conn
	ips  *nftables.Set
}

const services, endpoints = 1000, 10

// chain is kube-proxy's name for the chain of the i-th Service.
func chain(i int) string {
	id := fmt.Sprintf("ns%d/svc%d/tcp/http", i%50, i)
	sum := sha256.Sum256([]byte(id))
	return "service-" + base32.StdEncoding.EncodeToString(sum[:])[:8] + "-" + id
}

func newNode(t testing.TB) *node {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("makes a network namespace: needs root")
	}
	n := &node{name: fmt.Sprintf("kca-%d", os.Getpid())}
	ip := func(args ...string) {
		if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
			t.Fatalf("ip %v: %v\n%s", args, err, out)
		}
	}
	ip("netns", "add", n.name)
	t.Cleanup(func() { ip("netns", "delete", n.name) })
	var s strings.Builder
	s.WriteString(`add table ip kube-proxy
add map ip kube-proxy service-ips { type ipv4_addr . inet_proto . inet_service : verdict ; }
add chain ip kube-proxy services
add chain ip kube-proxy nat-prerouting { type nat hook prerouting priority -100 ; }
add rule ip kube-proxy nat-prerouting jump services
add rule ip kube-proxy services ip daddr . meta l4proto . th dport vmap @service-ips
`)
	for i := range services {
		fmt.Fprintf(&s, "add chain ip kube-proxy %s\nadd element ip kube-proxy service-ips { 10.97.%d.%d . tcp . 80 : goto %s }\n", chain(i), i>>8, i&255, chain(i))
		fmt.Fprintf(&s, "add rule ip kube-proxy %s meta l4proto tcp dnat ip addr . port to numgen random mod %d map { ", chain(i), endpoints)
		for j := range endpoints {
			k := i*endpoints + j
			if j > 0 {
				s.WriteString(" , ")
			}
			fmt.Fprintf(&s, "%d : 10.%d.%d.%d . 8080", j, 128+k>>16, k>>8&255, k&255)
		}
		s.WriteString(" }\n")
	}
	nft := exec.Command("ip", "netns", "exec", n.name, "nft", "-f", "-")
	nft.Stdin = strings.NewReader(s.String())
	if out, err := nft.CombinedOutput(); err != nil {
		t.Fatalf("nft: %v\n%s", err, out)
	}
	ns, err := os.Open("/run/netns/" + n.name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ns.Close() })
	if n.conn, err = nftables.New(nftables.WithNetNSFd(int(ns.Fd()))); err != nil {
		t.Fatal(err)
	}
	tables, err := n.conn.ListTablesOfFamily(nftables.TableFamilyIPv4)
	if err != nil || len(tables) != 1 {
		t.Fatalf("tables %v: %v", tables, err)
	}
	if n.ips, err = n.conn.GetSetByName(tables[0], "service-ips"); err != nil {
		t.Fatal(err)
	}
	return n
}

// change adds a second address to the i-th Service, or takes it away.
func (n *node) change(t testing.TB, i int, present bool) {
	t.Helper()
	key := bytes.Join([][]byte{{10, 98, byte(i >> 8), byte(i)}, {6, 0, 0, 0}, binaryutil.BigEndian.PutUint16(80), {0, 0}}, nil)
	el := []nftables.SetElement{{Key: key, VerdictData: &expr.Verdict{Kind: expr.VerdictGoto, Chain: chain(i)}}}
	var err error
	if present {
		err = n.conn.SetAddElements(n.ips, el)
	} else {
		err = n.conn.SetDeleteElements(n.ips, []nftables.SetElement{{Key: key}})
	}
	if err == nil {
		err = n.conn.Flush()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// run starts the program on the node; its lines go to a file.
func (n *node) run(t testing.TB, args ...string) (cmd *exec.Cmd, lines string) {
	t.Helper()
	return n.runBy(t, nil, args...)
}

// runBy lets another program, such as one that takes away rights, run it.
func (n *node) runBy(t testing.TB, by []string, args ...string) (cmd *exec.Cmd, lines string) {
	t.Helper()
	program := filepath.Join(t.TempDir(), "kconverge-agent")
	build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", program, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	lines = filepath.Join(t.TempDir(), "lines")
	out, err := os.Create(lines)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	cmd = exec.Command("nsenter", slices.Concat([]string{"--net=/run/netns/" + n.name}, by, []string{program, "--node", "node-1", "--proxy-metrics", ""}, args)...)
	cmd.Stdout, cmd.Stderr = out, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	until(t, "the agent has read the rules", func() bool { return count(t, lines, `"state":"synced"`) > 0 })
	return cmd, lines
}

func count(t testing.TB, file, what string) int {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Count(b, []byte(what))
}

func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for i := 0; !ok(); i++ {
		if i > 6000 {
			t.Fatalf("still not: %s", what)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// use is what a process has taken so far.
func use(t testing.TB, pid int) (cpu time.Duration, rssMB float64) {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	f := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+2:]))
	user, _ := strconv.Atoi(f[11])
	system, _ := strconv.Atoi(f[12])
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if kb, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			n, _ := strconv.Atoi(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(kb), "kB")))
			rssMB = float64(n) / 1024
		}
	}
	return time.Duration(user+system) * 10 * time.Millisecond, rssMB // USER_HZ is 100
}

// Ten thousand changes, as fast as the kernel takes them, all come out, in
// numbered lines that no container runtime cuts.
func TestTenThousandChangesWithoutALoss(t *testing.T) {
	const changes = 10_000
	n := newNode(t)
	cmd, lines := n.run(t, "--heartbeat", "1s", "--keyframe", "2s")
	for i := range changes {
		n.change(t, i/2%services, i%2 == 0)
	}
	until(t, "every change is printed", func() bool {
		return count(t, lines, `"type":"rules"`)-count(t, lines, `"baseline":true`) >= changes
	})
	_ = cmd.Process.Signal(syscall.SIGTERM)
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	f, err := os.Open(lines)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 1<<20)
	seq, rules := uint64(0), 0
	for sc.Scan() {
		if len(sc.Bytes()) > agent.MaxLine {
			t.Fatalf("a line of %d bytes", len(sc.Bytes()))
		}
		e, err := collect.Unmarshal(sc.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		if seq++; e.Seq != seq {
			t.Fatalf("line %d has number %d", seq, e.Seq)
		}
		switch p := e.Payload.(type) {
		case *collect.Gap:
			t.Fatalf("a gap: %+v", p)
		case *collect.Rules:
			if !p.Baseline {
				rules++
			}
		}
	}
	if rules != changes {
		t.Errorf("%d of %d changes were printed", rules, changes)
	}
}

// The manifest drops every capability but NET_ADMIN: that is enough to read
// everything, and to vouch for it.
func TestTheRightsThatTheManifestGivesAreEnough(t *testing.T) {
	n := newNode(t)
	_, lines := n.runBy(t, []string{"setpriv", "--inh-caps=-all", "--bounding-set=-all,+net_admin"}, "--heartbeat", "50ms")
	var vouch *collect.Vouch
	until(t, "the agent vouches twice", func() bool { return count(t, lines, `"type":"vouch"`) > 1 })
	b, err := os.ReadFile(lines)
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(b) {
		e, err := collect.Unmarshal(bytes.TrimSpace(line))
		if err != nil {
			continue // the last one may be half a line
		}
		switch p := e.Payload.(type) {
		case *collect.Rules:
			if len(p.Unknown) > 0 {
				t.Errorf("unknown: %q", p.Unknown)
			}
		case *collect.Vouch:
			vouch = p
		}
	}
	if vouch == nil || vouch.Until.IsZero() {
		t.Errorf("it vouches for nothing: %+v", vouch)
	}
}

// A reader that goes away ends the agent, with an error.
func TestAReaderThatGoesAwayEndsTheAgent(t *testing.T) {
	n := newNode(t)
	program := filepath.Join(t.TempDir(), "kconverge-agent")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	sh := exec.Command("nsenter", "--net=/run/netns/"+n.name, "sh", "-c", `{ "$0" --node n --heartbeat 20ms; echo "code $?" >&2; } | head -n 1 >/dev/null`, program)
	out, err := sh.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "nobody reads") || !strings.Contains(string(out), "code 1") {
		t.Errorf("%v: %s", err, out)
	}
}

// BenchmarkAgent measures the program on a node with a thousand Services of ten
// endpoints and ten changes a second: run it with -benchtime 60x, an iteration is
// a second.
func BenchmarkAgent(b *testing.B) {
	n := newNode(b)
	cmd, lines := n.run(b)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	before, _ := use(b, cmd.Process.Pid)
	start, i := time.Now(), 0
	for b.Loop() {
		for range 10 {
			<-tick.C
			n.change(b, i/2%services, i%2 == 0)
			i++
		}
	}
	took := time.Since(start)
	after, rss := use(b, cmd.Process.Pid)
	b.ReportMetric(100*float64(after-before)/float64(took), "%-of-a-core")
	b.ReportMetric(rss, "MB-resident")
	info, err := os.Stat(lines)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(info.Size())/1024/took.Minutes(), "KiB-log/min")
}
