package cluster_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/collect/nodelog"
	"github.com/kconverge/kconverge/engine/cluster"
	"github.com/kconverge/kconverge/engine/lab/nodes"
	"github.com/kconverge/kconverge/engine/report"
	"github.com/kconverge/kconverge/engine/timeline"
)

const (
	webImage   = "localhost/web:1"
	agentImage = "localhost/kconverge-agent:1"
	// often is how often a condition is looked at that nobody tells of.
	often = 50 * time.Millisecond
)

// webOfPrograms is a Deployment whose pods run a server on the real node, that is
// not ready at first, and its Service.
const webOfPrograms = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      nodeSelector: {` + cluster.RealLabel + `: "true"}
      tolerations: [{key: ` + cluster.RealTaint + `, operator: Exists}]
      dnsPolicy: Default
      terminationGracePeriodSeconds: 5
      containers:
      - name: web
        image: ` + webImage + `
        imagePullPolicy: Never
        args: [--unready=2100ms] # longer than a period: one probe is in vain at least
        readinessProbe: {httpGet: {path: /ready, port: 8080}, periodSeconds: 2, failureThreshold: 1}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec:
  selector: {app: web}
  ports: [{port: 80, targetPort: 8080}]
`

// line is how the viewer reaches the API server: it can be cut.
type line struct {
	mu   sync.Mutex
	down bool
	open []net.Conn
}

func (l *line) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.down {
		return nil, errors.New("the line is cut")
	}
	c, err := new(net.Dialer).DialContext(ctx, network, addr)
	if err == nil {
		l.open = append(l.open, c)
	}
	return c, err
}

func (l *line) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = true
	for _, c := range l.open {
		_ = c.Close()
	}
	l.open = nil
}

func (l *line) mend() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = false
}

// The agent as what it is, a DaemonSet as the command prints it, on a node with a
// kubelet, a container runtime and pods that run programs, beside a simulated one.
// What kconverge says of the paths is what the kubelet says, and nft.
func TestTheAgentsDaemonSetOnANodeThatIsEntirelyReal(t *testing.T) {
	allowed(t)
	if err := cluster.RealRefused(); err != nil {
		t.Skipf("no node can be real here: %v", err)
	}
	bin := programs(t, append(slices.Clone(cluster.RealPrograms), "kubectl")...)
	pod, agent := built(t, "./pod"), agentProgram(t)
	path := filepath.Dir(built(t, "../../cmd/kconverge")) + ":" + bin
	t.Cleanup(func() { nothingIsLeft(t) }) // after the cluster's own
	began := time.Now()
	w := begin(t, cluster.Options{
		Bin: bin, Agent: agent, Mode: cluster.NFTables, Nodes: 1,
		Real: &cluster.Real{Pause: pod, Images: []cluster.Image{
			{Name: webImage, Program: pod, Args: []string{"serve"}},
			{Name: agentImage, Program: agent},
		}},
	})
	w.Logf("the cluster with a real node is up after %s", time.Since(began).Round(time.Millisecond))
	w.shell(path, `
		kconverge agent manifest --image `+agentImage+` --heartbeat 1s | kubectl apply -f -
		kubectl -n kconverge rollout status daemonset/kconverge-agent --timeout 60s`)
	viewer := &line{}
	w.observe(func(causes *nodelog.Causes) collect.Source {
		config := w.cluster.Config()
		config.Dial = viewer.dial
		f, err := nodelog.NewFollower(nodelog.Options{Config: config, Causes: causes, ListEvery: 200 * time.Millisecond})
		w.must(err)
		return f
	})
	real, simulated := w.cluster.Real(), w.cluster.Simulated()[0]
	monitors := map[string]*monitor{}
	for _, n := range w.cluster.Nodes() {
		monitors[n.Name()] = w.monitor(n)
		w.heard(n, monitors[n.Name()])
	}
	kubelet := w.kubeletSays()

	w.shell(path, "kubectl apply -f - <<'E'"+webOfPrograms+"E\n")
	w.after("created")
	w.answer(1, simulated, real)
	w.scale(3)
	w.after("scaled to 3")
	w.answer(3, simulated, real)
	w.scale(1)
	w.after("scaled to 1")
	w.answer(1, simulated, real)
	w.restart()
	s := w.after("restarted")
	w.answer(1, simulated, real)
	w.flip("off")
	s = w.until("no node to lead anywhere", func(s *timeline.Snapshot) bool {
		svc := s.Service("default", "web")
		return slices.ContainsFunc(svc.Paths, func(p *timeline.Path) bool {
			return p.Op == timeline.OpRemove && p.Cause == timeline.CausePodUnready && p.Status == timeline.StatusArrived
		})
	})
	w.agree("unready")
	w.causal("unready", s)
	w.flip("on")
	s = w.after("ready again")
	w.answer(1, simulated, real)
	if gaps := w.history.lost(); len(gaps) > 0 {
		w.Errorf("something was lost: %q", gaps)
	}
	n, apart := kubelet.agrees(w, s)
	if n[timeline.CausePodReady] != 5 || n[timeline.CausePodTerminating] != 3 || n[timeline.CausePodUnready] != 1 {
		w.Errorf("paths by cause: %v, want those of 4 pods and 1 again, of 3 deleted ones, and of 1 unready", n)
	}
	w.Logf("ready, seen by two watches:           %s", distribution(apart))
	w.Logf("arrivals on both nodes, nft monitor:  %s", distribution(w.paired(s, monitors)))

	w.killedInSight()
	s = w.killedUnseen(path, viewer)
	w.answer(3, simulated, real)
	kubelet.agrees(w, s)
	w.headless(path)
	w.Logf("all of it took %s", time.Since(began).Round(time.Second))
}

// answer asks the Service's ClusterIP from inside the nodes until every pod that
// is ready has answered, and nobody else has.
func (w *world) answer(want int, from ...*nodes.Node) {
	w.Helper()
	svc, err := w.client.CoreV1().Services("default").Get(w.Context(), "web", metav1.GetOptions{})
	w.must(err)
	list, err := w.client.CoreV1().Pods("default").List(w.Context(), metav1.ListOptions{LabelSelector: "app=web"})
	w.must(err)
	var names []string
	for _, p := range list.Items {
		if p.DeletionTimestamp == nil && slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
		}) {
			names = append(names, p.Name)
		}
	}
	if len(names) != want {
		w.Errorf("%d pods are ready, want %d", len(names), want)
	}
	for _, n := range from {
		answered := map[string]bool{}
		client := http.Client{Transport: &http.Transport{DialContext: n.Dial, DisableKeepAlives: true}, Timeout: 5 * time.Second}
		for deadline := time.Now().Add(patience); len(answered) < len(names); {
			if time.Now().After(deadline) {
				w.Fatalf("from %s only %v answered, of %v", n.Name(), answered, names)
			}
			resp, err := client.Get("http://" + net.JoinHostPort(svc.Spec.ClusterIP, "80") + "/")
			if err != nil {
				w.Fatalf("ask the Service from %s: %v", n.Name(), err)
			}
			name, err := bufio.NewReader(resp.Body).ReadString('\n')
			resp.Body.Close()
			if name = strings.TrimSpace(name); err != nil || !slices.Contains(names, name) {
				w.Fatalf("from %s somebody answered %q (%v), not one of %v", n.Name(), name, err, names)
			}
			answered[name] = true
		}
	}
}

// flip lets the only pod pass its probe or not.
func (w *world) flip(to string) {
	w.Helper()
	list, err := w.client.CoreV1().Pods("default").List(w.Context(), metav1.ListOptions{LabelSelector: "app=web"})
	w.must(err)
	if len(list.Items) != 1 {
		w.Fatalf("there are %d pods", len(list.Items))
	}
	request, err := http.NewRequestWithContext(w.Context(), http.MethodPut, "http://"+net.JoinHostPort(list.Items[0].Status.PodIP, "8080")+"/ready/"+to, nil)
	w.must(err)
	client := http.Client{Transport: &http.Transport{DialContext: w.cluster.Real().Dial, DisableKeepAlives: true}, Timeout: 5 * time.Second}
	resp, err := client.Do(request)
	w.must(err)
	if resp.Body.Close(); resp.StatusCode != http.StatusOK {
		w.Fatalf("the pod says %s", resp.Status)
	}
}

// paired tells how far the arrivals are from when nft monitor heard of the same
// generations.
func (w *world) paired(s *timeline.Snapshot, monitors map[string]*monitor) (apart []time.Duration) {
	w.Helper()
	seen := map[string]int{}
	for _, p := range s.Service("default", "web").Paths {
		for _, h := range p.Rules {
			if h.Status != timeline.StatusArrived || h.Generation == 0 {
				continue
			}
			at, _, ok := monitors[h.Plane.Node].at(h.Generation)
			if !ok {
				w.Errorf("path %s arrived on %s in generation %d, of which nft monitor says nothing", p.ID, h.Plane.Node, h.Generation)
				continue
			}
			apart = append(apart, h.At.Sub(at).Abs())
			seen[h.Plane.Node]++
		}
	}
	for _, n := range w.cluster.Nodes() {
		if seen[n.Name()] == 0 {
			w.Errorf("no arrival on %s can be paired", n.Name())
		}
	}
	return apart
}

// agentPod is the agent's pod on the real node.
func (w *world) agentPod() *corev1.Pod {
	w.Helper()
	list, err := w.client.CoreV1().Pods(nodelog.DefaultNamespace).List(w.Context(), metav1.ListOptions{})
	w.must(err)
	if len(list.Items) != 1 || list.Items[0].Spec.NodeName != cluster.RealName || len(list.Items[0].Status.ContainerStatuses) != 1 {
		w.Fatalf("there are %d pods of agents: %+v", len(list.Items), list.Items)
	}
	return &list.Items[0]
}

// kill kills the agent's container and waits until its kubelet has started it again.
func (w *world) kill() {
	w.Helper()
	began := time.Now()
	was := w.agentPod().Status.ContainerStatuses[0]
	id := strings.TrimPrefix(was.ContainerID, "containerd://")
	if _, err := w.cluster.Ctr(w.Context(), "tasks", "kill", "--signal", "SIGKILL", id); err != nil {
		w.Fatal(err)
	}
	w.eventually("the agent's container to run again", func() bool {
		now := w.agentPod().Status.ContainerStatuses[0]
		return now.RestartCount > was.RestartCount && now.State.Running != nil
	})
	w.Logf("the agent ran again %s after it was killed", time.Since(began).Round(time.Millisecond))
}

func (w *world) eventually(what string, ok func() bool) {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), patience)
	defer cancel()
	if err := wait.PollUntilContextCancel(ctx, often, true, func(context.Context) (bool, error) { return ok(), nil }); err != nil {
		w.Fatalf("waiting for %s: %v", what, err)
	}
}

// killedInSight kills the agent while its log is followed: that is a gap, and
// nothing after it is wrong.
func (w *world) killedInSight() {
	w.Helper()
	w.kill()
	w.until("the gap to be told and closed", func(s *timeline.Snapshot) bool {
		var all, open int
		for _, g := range s.Gaps {
			if g.Source == collect.RulesSource(cluster.RealName) {
				all++
				if g.To.IsZero() {
					open++
				}
			}
		}
		return all > 0 && open == 0
	})
	w.scale(2)
	w.after("scaled to 2 after the agent was killed")
}

// killedUnseen kills the agent while nobody can read what it says: the rules that
// changed meanwhile are told as they did, from the log of the container that is no
// more.
func (w *world) killedUnseen(path string, viewer *line) *timeline.Snapshot {
	w.Helper()
	viewer.cut()
	before := w.read(w.cluster.Real())
	scaled := time.Now()
	w.scale(3)
	w.eventually("the rules of "+cluster.RealName+" to lead to 3 pods", func() bool {
		return len(addresses(w.read(w.cluster.Real()).ports)["default/web"]) == 3
	})
	changed := w.read(w.cluster.Real())
	w.eventually("the agent to have said so", func() bool {
		return strings.Contains(w.shell(path, "kubectl -n kconverge logs daemonset/kconverge-agent --tail 20"), fmt.Sprintf(`"generation":%d`, changed.gen))
	})
	killed := time.Now()
	w.kill()
	viewer.mend()
	s := w.after("scaled to 3 while nobody could read, and the agent killed then")
	place, ok, _ := w.history.at(cluster.RealName, changed.gen)
	if !ok {
		w.Fatalf("nobody told of generation %d", changed.gen)
	}
	if st, _ := w.history.state(cluster.RealName, place); st.gen <= before.gen || st.gen > changed.gen {
		w.Errorf("the rules changed between generations %d and %d, and were told in %d", before.gen, changed.gen, st.gen)
	}
	arrivals := 0
	for _, p := range s.Service("default", "web").Paths {
		for _, h := range p.Rules {
			if h.Plane.Node != cluster.RealName || h.Generation <= before.gen || h.Generation > changed.gen {
				continue
			}
			if arrivals++; !h.NotBefore.IsZero() && h.NotBefore.Before(scaled) || h.At.After(killed) {
				w.Errorf("path %s arrived between %s and %s, scaled after %s, the agent was killed after %s: it had said when", p.ID, h.NotBefore, h.At, scaled, killed)
			}
		}
	}
	if arrivals != 1 {
		w.Errorf("%d paths arrived on %s while nobody could read, want that of 1 pod", arrivals, cluster.RealName)
	}
	return s
}

// headless runs the program itself, as a user who has nothing but the Roles that it
// prints.
func (w *world) headless(path string) {
	w.Helper()
	simulated := w.cluster.Simulated()[0].Name()
	out := w.shell(path, `
		{
			kconverge info --rbac | kubectl apply -f -
			kubectl create clusterrolebinding viewer-nodes --clusterrole=kconverge-viewer-nodes --user=viewer
			kubectl create rolebinding viewer --role=kconverge-viewer --user=viewer
			kubectl -n kconverge create rolebinding viewer --role=kconverge-agent-logs --user=viewer
		} >&2
		kconverge watch svc/web --as viewer --agents --node-log `+simulated+"="+w.cluster.Lines(simulated)+" --headless --for 3s -o json")
	var r report.Report
	if err := json.Unmarshal([]byte(out), &r); err != nil || len(r.Services) != 1 {
		w.Fatalf("watch printed %d Services (%v): %s", len(r.Services), err, out)
	}
	s := r.Services[0]
	if len(s.Coverage.BlindPlanes) > 0 || s.Coverage.Seen != 2 || len(s.Planes.Rules) != 2 {
		w.Errorf("not everything is seen: %+v, %+v", s.Coverage, s.Planes)
	}
	for _, n := range w.cluster.Nodes() {
		want := len(addresses(w.read(n).ports)["default/web"])
		if p := s.Planes.Rules[n.Name()]; want != 3 || p.Want != want || p.Have != want || !p.Agree {
			w.Errorf("%s: nft prints %d endpoints, kconverge %+v", n.Name(), want, p)
		}
	}
}

// nothingIsLeft looks for what a real node could leave on this machine.
func nothingIsLeft(t *testing.T) {
	t.Helper()
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(mounts)) {
		if strings.Contains(line, "/"+cluster.RealName+"/") {
			t.Errorf("a mount is left: %s", line)
		}
	}
	left, _ := filepath.Glob(fmt.Sprintf("/sys/fs/cgroup/*/kconverge-%d-*", os.Getpid()))
	more, _ := filepath.Glob(fmt.Sprintf("/sys/fs/cgroup/kconverge-%d-*", os.Getpid()))
	if left = append(left, more...); len(left) > 0 {
		t.Errorf("cgroups are left: %q", left)
	}
	processes, _ := filepath.Glob("/proc/[0-9]*/cgroup")
	for _, file := range processes {
		if b, err := os.ReadFile(file); err == nil && strings.Contains(string(b), fmt.Sprintf("/kconverge-%d-", os.Getpid())) {
			t.Errorf("a process is left: %s\n%s", file, b)
		}
	}
}
