package cluster_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/kconverge/kconverge/engine/cluster"
	"github.com/kconverge/kconverge/engine/report"
)

// viewer is somebody who uses the built kconverge with rights and a token of their
// own.
type viewer struct {
	*world
	user       string // in the API server's words
	path       string // of the programs
	kubeconfig string
	scope      string   // "" or "-A"
	logs       []string // --node-log arguments
}

// try runs a command line with the programs on its PATH and a kubeconfig, and
// returns its standard output and exit code.
func (w *world) try(path, kubeconfig, line string) (string, int) {
	w.Helper()
	cmd := exec.CommandContext(w.Context(), "bash", "-euo", "pipefail", "-c", line)
	cmd.Env = append(os.Environ(), "PATH="+path+":"+os.Getenv("PATH"), "KUBECONFIG="+kubeconfig, "HOME="+w.TempDir())
	var out, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &stderr
	err := cmd.Run()
	if exit := new(exec.ExitError); errors.As(err, &exit) && exit.ExitCode() >= 0 {
		w.Logf("%s: exit code %d: %s", strings.TrimSpace(line), exit.ExitCode(), stderr.String())
		return out.String(), exit.ExitCode()
	}
	w.must(err)
	return out.String(), 0
}

// shell runs a command line as the administrator, which must succeed, and returns its
// standard output.
func (w *world) shell(path, line string) string {
	w.Helper()
	out, code := w.try(path, w.cluster.Kubeconfig(), line)
	if code != 0 {
		w.Fatalf("exit code %d of %s: %s", code, line, out)
	}
	return out
}

// run runs kconverge as the viewer and checks its exit code.
func (v *viewer) run(code int, line string) string {
	v.Helper()
	out, got := v.try(v.path, v.kubeconfig, line)
	if got != code {
		v.Errorf("%s: %s ended with %d, want %d:\n%s", v.user, line, got, code, out)
	}
	return out
}

// newViewer makes a ServiceAccount and a kubeconfig with a token of its.
func (w *world) newViewer(path, name, scope string) *viewer {
	w.Helper()
	w.shell(path, "kubectl create serviceaccount "+name)
	token := strings.TrimSpace(w.shell(path, "kubectl create token "+name))
	k, err := clientcmd.LoadFromFile(w.cluster.Kubeconfig())
	w.must(err)
	for _, user := range k.AuthInfos {
		user.ClientCertificateData, user.ClientKeyData, user.Token = nil, nil, token
	}
	v := &viewer{world: w, user: serviceAccount(name), path: path, scope: scope, kubeconfig: filepath.Join(w.TempDir(), "kubeconfig")}
	w.must(clientcmd.WriteToFile(*k, v.kubeconfig))
	for _, n := range w.cluster.Nodes() {
		v.logs = append(v.logs, "--node-log", n.Name()+"="+w.cluster.Lines(n.Name()))
	}
	return v
}

func serviceAccount(name string) string { return "system:serviceaccount:default:" + name }

// request is what an audit log says of one (audit.k8s.io/v1, Event).
type request struct {
	AuditID, Stage, Verb, RequestURI string
	User                             struct{ Username string }
	ObjectRef                        struct{ Resource, Subresource, Namespace, Name string }
	ResponseStatus                   struct{ Code int }
}

func (r *request) String() string {
	return fmt.Sprintf("%s %s: %d", r.Verb, r.RequestURI, r.ResponseStatus.Code)
}

// requests are all that the API server has had of a user so far.
func (w *world) requests(user string) (out []request) {
	w.Helper()
	raw, err := os.ReadFile(w.cluster.AuditLog())
	w.must(err)
	for line := range bytes.Lines(raw) {
		var r request
		if err := json.Unmarshal(line, &r); err != nil {
			w.Fatalf("audit log: %v in %s", err, line)
		}
		if r.User.Username == user {
			out = append(out, r)
		}
	}
	return out
}

// screen opens watch on a terminal, presses every key that shows or would do
// something, and closes it.
func (v *viewer) screen() {
	v.Helper()
	socket := filepath.Join(v.TempDir(), "tmux")
	tmux := func(args ...string) string {
		v.Helper()
		cmd := exec.CommandContext(v.Context(), "tmux", append([]string{"-S", socket, "-f", "/dev/null"}, args...)...)
		cmd.Env = append(os.Environ(), "PATH="+v.path+":"+os.Getenv("PATH"), "KUBECONFIG="+v.kubeconfig, "HOME="+v.TempDir(), "LANG=C.UTF-8")
		out, err := cmd.CombinedOutput()
		if err != nil {
			v.Fatalf("tmux %v: %v: %s", args, err, out)
		}
		return string(out)
	}
	ended := filepath.Join(v.TempDir(), "ended")
	tmux("new-session", "-d", "-x", "140", "-y", "40",
		fmt.Sprintf("kconverge watch %s %s; echo $? >%s; sleep 1000", v.scope, strings.Join(v.logs, " "), ended))
	defer tmux("kill-server")
	shows := func(what string) {
		v.Helper()
		for deadline := time.Now().Add(patience); ; <-time.After(50 * time.Millisecond) {
			screen := tmux("capture-pane", "-p")
			if strings.Contains(screen, what) {
				return
			}
			if time.Now().After(deadline) {
				v.Fatalf("%s: no %q on the screen:\n%s", v.user, what, screen)
			}
		}
	}
	shows("web")
	shows("converged")
	for key := 'a'; key <= 'z'; key++ {
		if key == 'q' {
			continue // ends it
		}
		// Whatever a key has opened, Escape closes.
		tmux("send-keys", string(key))
		tmux("send-keys", "Enter")
		tmux("send-keys", "Escape")
	}
	for _, key := range []string{"1", "2", "3", "4", "5", "6"} {
		tmux("send-keys", key)
	}
	shows("kconverge")
	tmux("send-keys", "C-c")
	for deadline := time.Now().Add(patience); ; <-time.After(50 * time.Millisecond) {
		if code, err := os.ReadFile(ended); err == nil && len(code) > 0 {
			return
		}
		if time.Now().After(deadline) {
			v.Fatalf("it does not end:\n%s", tmux("capture-pane", "-p"))
		}
	}
}

// The program itself, as users who have nothing but the Roles that it prints and a
// token, with the real API server to enforce them: they see what nft prints on every
// node. The API server's audit log has all that they asked: to get, list and watch,
// and nothing of it was forbidden, but for one question of info's.
func TestViewersWithThePrintedRolesSeeEveryNodeAndOnlyLook(t *testing.T) {
	allowed(t)
	path := filepath.Dir(built(t, "../../cmd/kconverge")) + ":" + programs(t, "kubectl")
	w := start(t, cluster.NFTables, 2, serviceAccount("one"), serviceAccount("all"))
	w.shell(path, `
		kubectl create namespace kconverge
		kconverge info --rbac | kubectl apply -f -
		kconverge info --rbac -A | kubectl apply -f -`)
	one, all := w.newViewer(path, "one", ""), w.newViewer(path, "all", "-A")
	w.shell(path, `
		kubectl create clusterrolebinding one --clusterrole=kconverge-viewer-nodes --serviceaccount=default:one
		kubectl create rolebinding one --role=kconverge-viewer --serviceaccount=default:one
		kubectl create clusterrolebinding all --clusterrole=kconverge-viewer --serviceaccount=default:all
		kubectl -n kconverge create rolebinding viewers --role=kconverge-agent-logs --serviceaccount=default:one --serviceaccount=default:all
		kubectl create deployment web --image=nginx --replicas=5
		kubectl create service clusterip web --tcp=80:8080 --dry-run=client -o yaml | sed 's/^spec:/&\n  ipFamilyPolicy: PreferDualStack/' | kubectl apply -f -
		kubectl rollout status deployment/web`)
	want := 5 * w.families
	for _, v := range []*viewer{one, all} {
		logs := " " + strings.Join(v.logs, " ")
		// wait names one Service, in its namespace.
		v.run(0, "kconverge wait svc/web"+logs)
		var r report.Report
		out := v.run(0, "kconverge watch "+v.scope+" --headless --for 5s -o json"+logs)
		if err := json.Unmarshal([]byte(out), &r); err != nil {
			t.Fatalf("watch printed %s (%v)", out, err)
		}
		for i := range r.Services {
			s := &r.Services[i]
			if s.Name != "web" {
				continue
			}
			if len(s.Coverage.BlindPlanes) > 0 || s.Coverage.Seen != 2 || len(s.Planes.Rules) != 2 {
				t.Errorf("not everything is seen: %+v, %+v", s.Coverage, s.Planes)
			}
			for _, n := range w.cluster.Nodes() {
				nft := len(addresses(w.read(n).ports)["default/web"])
				if p := s.Planes.Rules[n.Name()]; nft != want || p.Want != nft || p.Have != nft || !p.Agree {
					t.Errorf("%s: nft prints %d endpoints of %d, kconverge %+v", n.Name(), nft, want, p)
				}
			}
		}
		v.run(0, "kconverge run "+v.scope+logs+" -- true")
		// Without agents' lines it looks for the agents' pods; there are none.
		v.run(4, "kconverge watch "+v.scope+" --headless --for 2s")
		v.screen()
		v.run(0, "kconverge info "+v.scope)
		v.looked()
	}
	w.recordedRun(path, strings.Join(all.logs, " "))
	// The log would show a write, and the API server refuse it.
	one.run(1, "kubectl delete deployment web")
	var refused bool
	for _, r := range w.requests(one.user) {
		refused = refused || r.Verb == "delete" && r.ResponseStatus.Code == 403
	}
	if !refused {
		t.Error("the audit log does not show that the viewer tried to delete a Deployment")
	}
}

// recordedRun scales up and down in a recorded run: replayed, the recording comes to the
// same report, byte for byte.
func (w *world) recordedRun(path, logs string) {
	w.Helper()
	for _, replicas := range []int{9, 3} {
		file := filepath.Join(w.TempDir(), fmt.Sprint(replicas))
		seen := w.shell(path, fmt.Sprintf("kconverge run svc/web %s --record %s --output json -- kubectl scale deployment/web --replicas=%d", logs, file, replicas))
		var r report.Report
		if err := json.Unmarshal([]byte(seen), &r); err != nil {
			w.Fatalf("run printed %s (%v)", seen, err)
		}
		if len(r.Services) != 1 || len(r.Services[0].Paths) < 4*w.families {
			w.Errorf("scaled to %d, the report has %d Services and too few changes", replicas, len(r.Services))
		}
		if replayed := w.shell(path, "kconverge export "+file+" --service default/web --to json"); replayed != seen {
			w.Errorf("scaled to %d, the recording comes to another report: %d and %d bytes", replicas, len(replayed), len(seen))
		}
	}
}

// looked checks all that the viewer has asked of the API server.
func (v *viewer) looked() {
	v.Helper()
	all := v.requests(v.user)
	watched, forbidden := map[string]bool{}, 0
	for i := range all {
		r := &all[i]
		switch r.Verb {
		case "get", "list":
		case "watch":
			watched[r.ObjectRef.Resource] = true
		default:
			v.Errorf("%s tried to %s", v.user, r)
		}
		switch o := r.ObjectRef; {
		case r.ResponseStatus.Code != 403:
		case v.scope == "" && r.Verb == "list" && o.Resource == "daemonsets" && o.Namespace == "kube-system":
			forbidden++ // info asks what the service proxy is, and says that it cannot tell
		default:
			v.Errorf("%s was forbidden to %s", v.user, r)
		}
	}
	if forbidden > 1 {
		v.Errorf("%s was forbidden %d times to list DaemonSets of kube-system: info asks once", v.user, forbidden)
	}
	for _, resource := range []string{"nodes", "services", "pods", "endpointslices", "endpoints", "deployments", "replicasets", "statefulsets", "daemonsets", "events"} {
		if !watched[resource] {
			v.Errorf("%s never watched %s: what else did it not ask?", v.user, resource)
		}
	}
	v.Logf("%s: %d audited stages of requests, to get, list or watch; %d forbidden", v.user, len(all), forbidden)
}
