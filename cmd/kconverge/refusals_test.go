package main

import (
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/charmbracelet/x/vt"
)

// TestEveryRefusalIsOnePlainLine: what cannot work says so in one line that
// names the thing and the way out, with the documented exit code.
func TestEveryRefusalIsOnePlainLine(t *testing.T) {
	h := newHome(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	_, port, _ := net.SplitHostPort(taken.Addr().String())
	write := func(name, content string, mode os.FileMode) string {
		path := filepath.Join(h.dir, name)
		if err := os.WriteFile(path, []byte(content), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	broken := write("broken.yaml", "clusters: [", 0o600)
	gone := write("gone.yaml", `{apiVersion: v1, kind: Config, clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}], contexts: [{name: c, context: {cluster: c, user: u}}], users: [{name: u, user: {token: t}}], current-context: c}`, 0o600)
	theirs := write("theirs.yaml", "apiVersion: v1\n", 0o600)
	text := write("notes.txt", "hello\n", 0o600)
	pipe := filepath.Join(h.dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}

	for _, c := range []struct {
		name string
		args []string
		code int
		says []string
	}{
		{"port taken", []string{"lab", "--headless", "--port", port}, exitUnreachable, []string{"127.0.0.1:" + port, "already in use", "--port 0"}},
		{"no terminal", []string{"lab"}, exitUsage, []string{"no terminal", "--headless"}},
		{"no terminal to watch on", []string{"watch", "--kubeconfig", gone}, exitUsage, []string{"no terminal", "--headless"}},
		{"unreadable kubeconfig", []string{"watch", "--headless", "--kubeconfig", broken}, exitUsage, []string{"broken.yaml"}},
		{"no kubeconfig", []string{"watch", "--headless", "--kubeconfig", filepath.Join(h.dir, "absent.yaml")}, exitUsage, []string{"absent.yaml"}},
		{"no cluster configured", []string{"watch", "--headless"}, exitUnreachable, []string{"no cluster is configured", "--kubeconfig", "kconverge lab"}},
		{"cluster gone", []string{"watch", "--headless", "--kubeconfig", gone}, exitUnreachable, []string{"127.0.0.1:1", "refused", "kconverge lab"}},
		{"a server by its flag alone", []string{"watch", "--headless", "--server", "https://127.0.0.1:1"}, exitUnreachable, []string{"127.0.0.1:1", "refused"}},
		{"cluster gone for run", []string{"run", "--kubeconfig", gone, "--", "true"}, exitUnreachable, []string{"127.0.0.1:1"}},
		{"no command", []string{"run"}, exitUsage, []string{"run needs a command", "kubectl scale"}},
		{"no -- after a Service", []string{"run", "svc/web", "kubectl"}, exitUsage, []string{"run svc/web -- kubectl"}},
		{"no -- before the command's flags", []string{"run", "kubectl", "--replicas=7"}, exitUsage, []string{"--replicas", "run -- kubectl"}},
		{"a Service and no command", []string{"run", "svc/web", "--"}, exitUsage, []string{"run needs a command", "kubectl scale"}},
		{"no Service before the command", []string{"run", "--kubeconfig", gone, "pod/web", "--", "true"}, exitUsage, []string{"svc/NAME"}},
		{"no Service", []string{"wait"}, exitUsage, []string{"svc/NAME"}},
		{"a pod instead of a Service", []string{"watch", "--headless", "--kubeconfig", gone, "pod/web"}, exitUsage, []string{"pod/web", "svc/NAME"}},
		{"no name of a namespace", []string{"watch", "--headless", "--kubeconfig", gone, "-n", "shop,Shop"}, exitUsage, []string{`namespace "Shop"`, "lower case"}},
		{"a Service of which namespace", []string{"wait", "--kubeconfig", gone, "-n", "shop,default", "svc/web"}, exitUsage, []string{"svc/web.NAMESPACE"}},
		{"a Service of all namespaces", []string{"wait", "--kubeconfig", gone, "-A", "svc/web"}, exitUsage, []string{"svc/web.NAMESPACE"}},
		{"a Service of a namespace that is not observed", []string{"wait", "--kubeconfig", gone, "svc/web.shop"}, exitUsage, []string{`namespace "shop" is not observed`, "-n"}},
		{"since nothing", []string{"watch", "--headless", "--kubeconfig", gone, "--since", "0s"}, exitUsage, []string{"--since 0s", "10m"}},
		{"no time to wait", []string{"wait", "--kubeconfig", gone, "svc/web", "--timeout", "-3s"}, exitUsage, []string{"--timeout -3s", "5m"}},
		{"no time to run", []string{"run", "--kubeconfig", gone, "--timeout", "0s", "--", "true"}, exitUsage, []string{"--timeout 0s", "5m"}},
		{"no time to check", []string{"check", "--kubeconfig", gone, "--timeout", "-1s"}, exitUsage, []string{"--timeout -1s", "5m"}},
		{"no time in the lab", []string{"lab", "--headless", "--timeout", "-1s"}, exitUsage, []string{"--timeout -1s", "5m"}},
		{"fewer endpoints than none", []string{"wait", "--kubeconfig", gone, "svc/web", "--min-endpoints", "-1"}, exitUsage, []string{"--min-endpoints -1", "0 or more"}},
		{"wrong output", []string{"lab", "--headless", "--output", "yaml"}, exitUsage, []string{"yaml", "text, json, events or none"}},
		{"wrong number of nodes", []string{"lab", "--headless", "--nodes", "0"}, exitUsage, []string{"--nodes 0", "1 to 200"}},
		{"unknown dataplane", []string{"lab", "--headless", "--dataplane", "ipvs"}, exitUsage, []string{"ipvs", "kube-proxy or flat"}},
		{"no control plane there", []string{"lab", "--headless", "--control-plane", h.dir}, exitUsage, []string{"no etcd in " + h.dir, "make cluster-bin"}},
		{"seed and empty", []string{"lab", "--headless", "--seed", "--empty"}, exitUsage, []string{"exclude"}},
		{"unknown flag", []string{"lab", "--nods", "3"}, exitUsage, []string{"--nods"}},
		{"unknown command", []string{"lib"}, exitUsage, []string{"unknown command", "lib", "--help"}},
		{"somebody's kubeconfig", []string{"lab", "--headless", "--kubeconfig", theirs}, exitUsage, []string{"theirs.yaml", "name another"}},
		{"a pipe as kubeconfig", []string{"watch", "--headless", "--kubeconfig", pipe}, exitUsage, []string{"pipe", "name a file"}},
		{"a pipe for the lab's kubeconfig", []string{"lab", "--headless", "--kubeconfig", pipe}, exitUsage, []string{"pipe", "name another"}},
		{"no recording", []string{"replay", "--headless", text}, exitUnreachable, []string{"notes.txt", "not a kconverge recording"}},
		{"no file", []string{"replay", "--headless", filepath.Join(h.dir, "absent")}, exitUnreachable, []string{"absent"}},
		{"recording exists", []string{"lab", "--headless", "--record", text}, exitUsage, []string{"notes.txt", "exists already"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, stdout, stderr := h.run(t, nil, c.args...)
			if code != c.code {
				t.Errorf("exit code %d, want %d", code, c.code)
			}
			if lines := strings.Count(strings.TrimSpace(stderr), "\n") + 1; lines != 1 || !strings.HasPrefix(stderr, "kconverge: ") {
				t.Errorf("not one plain line:\n%s", stderr)
			}
			for _, part := range c.says {
				if !strings.Contains(stderr, part) {
					t.Errorf("no %q in %s", part, stderr)
				}
			}
			if stdout != "" {
				t.Errorf("standard output has %q", stdout)
			}
		})
	}
	if b, err := os.ReadFile(text); err != nil || string(b) != "hello\n" {
		t.Errorf("a file that was in the way is now %q (%v)", b, err)
	}
}

// withoutNetNS runs a command line in a user namespace that may have no network
// namespaces. "$@" is kconverge with the arguments.
func withoutNetNS(args ...string) (string, []string) {
	const script = `echo 0 > /proc/sys/user/max_net_namespaces; exec "$@"`
	return "unshare", append([]string{"--user", "--map-root-user", "--mount", "sh", "-c", script, "sh", program}, args...)
}

// inMemory checks what the lab says on standard error when its nodes are in
// memory: one line about it with the way out.
func inMemory(t *testing.T, stderr string, wayOut ...string) {
	t.Helper()
	var lines []string
	for line := range strings.Lines(stderr) {
		if strings.HasPrefix(line, "kconverge: ") {
			lines = append(lines, line)
		}
	}
	if len(lines) != 1 || !strings.Contains(lines[0], "namespaces are not allowed here") || !strings.Contains(lines[0], "in memory, and no packets flow") {
		t.Fatalf("not one plain line about nodes in memory:\n%s", stderr)
	}
	for _, part := range wayOut {
		if !strings.Contains(lines[0], part) {
			t.Errorf("no %q in %s", part, lines[0])
		}
	}
}

const threeReplicas = "kubectl create deployment web --image=nginx --replicas=3 && kubectl expose deployment web --port=80 && kubectl rollout status deployment/web"

func TestWithoutNetworkNamespacesTheLabConvergesInMemoryAndSaysSo(t *testing.T) {
	kubectl(t)
	h := newHome(t)
	for _, output := range []string{"json", "text"} {
		name, args := withoutNetNS("lab", "--headless", "--nodes", "2", "--output", output, "--run", threeReplicas)
		cmd := exec.Command(name, args...)
		stdout, stderr := h.output(t, cmd)
		inMemory(t, stderr, "user.max_net_namespaces")
		if output == "text" {
			if !strings.Contains(stdout, "\nrules in memory: network namespaces are refused\n") {
				t.Errorf("the text does not say where the rules are:\n%s", stdout)
			}
			continue
		}
		r := parse(t, stdout)
		if r.Source.Rules != "in memory: network namespaces are refused" {
			t.Errorf("rules: %q", r.Source.Rules)
		}
		s := web(t, r)
		agree(t, s, 3, 2)
		arrived := 0
		for i := range s.Paths {
			if p := &s.Paths[i]; p.Op == "add" && p.Status == "arrived" && p.Endpoint.IP != "" {
				causal(t, p, 2)
				arrived++
			}
		}
		if arrived < 3 {
			t.Errorf("%d endpoints arrived, want 3", arrived)
		}
	}
	if left := h.left(t); len(left) > 0 {
		t.Errorf("left behind: %s", left)
	}
}

// TestWithoutIPv6TheLabIsIPv4AloneAndSaysSo hides the settings of IPv6, as a
// kernel without it has none.
func TestWithoutIPv6TheLabIsIPv4AloneAndSaysSo(t *testing.T) {
	kubectl(t)
	h := newHome(t)
	const script = `mount -t tmpfs none /proc/sys/net/ipv6 && exec "$@"`
	const commands = threeReplicas + ` && kubectl get nodes -o 'jsonpath={.items[0].spec.podCIDRs}' >&2 &&
		! kubectl patch service web --type=merge -p '{"spec":{"ipFamilyPolicy":"RequireDualStack"}}'`
	cmd := exec.Command("unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script, "sh", program,
		"lab", "--headless", "--nodes", "2", "--output", "json", "--run", commands)
	stdout, stderr := h.output(t, cmd)
	for _, says := range []string{
		"kconverge: this kernel has no IPv6", "Nodes, pods and Services have IPv4 alone.\n", `["10.244.1.0/24"]`,
		"this cluster is not configured for dual-stack services: this kernel has no IPv6",
	} {
		if !strings.Contains(stderr, says) {
			t.Errorf("no %q in\n%s", says, stderr)
		}
	}
	r := parse(t, stdout)
	if r.Source.Rules != "kernel, IPv4 only (2 netns)" {
		t.Errorf("rules: %q", r.Source.Rules)
	}
	agree(t, web(t, r), 3, 2)
}

func TestWithoutNetworkNamespacesTheScreenSaysWhereTheRulesAre(t *testing.T) {
	for cols, says := range map[int]string{80: "in memory", 120: "rules: in memory: network namespaces are refused"} {
		h := newHome(t)
		x := &terminal{emu: vt.NewEmulator(cols, 30)}
		name, args := withoutNetNS("lab")
		master, done := h.commandOnTerminal(t, 30, uint16(cols), x, exec.Command(name, args...))
		go func() { _, _ = io.Copy(master, x.emu) }() // the terminal's answers
		eventually(t, "web converged, and where the rules are", func() bool {
			s := x.screen()
			return strings.Contains(s, says) && strings.Contains(s, "● converged")
		})
		if _, err := master.WriteString("q"); err != nil {
			t.Fatal(err)
		}
		<-done
		eventually(t, "the way out and what was seen, once the screen is gone", func() bool {
			s := strings.Join(strings.Fields(x.screen()), "")
			return strings.Contains(s, "user.max_net_namespaces") && strings.Contains(s, "1Servicein") && strings.Contains(s, "Slowest:")
		})
	}
}

func TestWithTooFewNetworkNamespacesTheLabIsInMemoryAsAWhole(t *testing.T) {
	kubectl(t)
	h := newHome(t)
	name, args := withoutNetNS("lab", "--headless", "--nodes", "3", "--output", "json", "--run", threeReplicas)
	for i, a := range args {
		args[i] = strings.Replace(a, "echo 0 >", "echo 3 >", 1)
	}
	cmd := exec.Command(name, args...)
	stdout, stderr := h.output(t, cmd)
	inMemory(t, stderr, "4 network namespaces where user.max_net_namespaces is 3")
	agree(t, web(t, parse(t, stdout)), 3, 3)
}

func TestAUserWhoMayNotHaveUserNamespacesRunsTheLabInMemory(t *testing.T) {
	kubectl(t)
	h := newHome(t)
	if err := exec.Command("chown", "-R", "65534:65534", h.dir).Run(); err != nil {
		t.Fatal(err)
	}
	// In a user namespace of root with two users, whose other user may make
	// none.
	script := `echo 0 > /proc/sys/user/max_user_namespaces; exec setpriv --reuid=65534 --regid=65534 --clear-groups "$@"`
	cmd := exec.Command("sh", append([]string{"-c", script, "sh", program}, "lab", "--headless", "--nodes", "2", "--output", "json", "--run", threeReplicas)...)
	cmd.SysProcAttr = twoUsers()
	stdout, stderr := h.output(t, cmd)
	inMemory(t, stderr, "max_user_namespaces")
	agree(t, web(t, parse(t, stdout)), 3, 2)
	if left := h.left(t); len(left) > 0 {
		t.Errorf("left behind: %s", left)
	}
}

// twoUsers puts a process into a user namespace that has root and nobody.
func twoUsers() *syscall.SysProcAttr {
	ids := []syscall.SysProcIDMap{{ContainerID: 0, HostID: 0, Size: 1}, {ContainerID: 65534, HostID: 65534, Size: 1}}
	return &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS, UidMappings: ids, GidMappings: ids, GidMappingsEnableSetgroups: true}
}

func TestAnOrdinaryUserRunsTheLab(t *testing.T) {
	kubectl(t)
	if os.Getuid() != 0 {
		t.Log("already an ordinary user")
	}
	h := newHome(t)
	if err := exec.Command("chown", "-R", "65534:65534", h.dir).Run(); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", program, "lab", "--headless", "--nodes", "2", "--output", "json", "--run",
		"kubectl create deployment web --image=nginx --replicas=3 && kubectl expose deployment web --port=80 && kubectl rollout status deployment/web && echo $KUBECONFIG >&2")
	// Without a runtime directory the name has the user's id, also in the user
	// namespace in which it is 0.
	cmd.Env = slices.DeleteFunc(h.env, func(v string) bool { return strings.HasPrefix(v, "XDG_RUNTIME_DIR=") })
	var stderr buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	if !strings.Contains(stderr.String(), "kconverge-65534/lab.kubeconfig") {
		t.Errorf("another kubeconfig than kconverge-65534/lab.kubeconfig: %s", stderr.String())
	}
	agree(t, web(t, parse(t, string(out))), 3, 2)
	if left := h.left(t); len(left) > 0 {
		t.Errorf("left behind: %s", left)
	}
}
