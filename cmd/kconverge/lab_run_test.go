package main

import (
	"strconv"
	"strings"
	"testing"

	"github.com/kconverge/kconverge/engine/report"
)

func web(t *testing.T, r *report.Report) *report.Service {
	t.Helper()
	for i := range r.Services {
		if r.Services[i].Namespace == "default" && r.Services[i].Name == "web" {
			return &r.Services[i]
		}
	}
	t.Fatalf("default/web is not in the report: %+v", r.Services)
	return nil
}

// agree checks that the Service has converged with n endpoints on every plane.
func agree(t *testing.T, s *report.Service, n, nodes int) {
	t.Helper()
	if s.State != "converged" {
		t.Errorf("state %s", s.State)
	}
	want := report.Plane{Want: n, Have: n, Agree: true}
	for name, p := range map[string]*report.Plane{"slices": s.Planes.Slices, "endpoints": s.Planes.Endpoints} {
		if p == nil || *p != want {
			t.Errorf("%s %+v, want %d", name, p, n)
		}
	}
	if s.Planes.Pods == nil || s.Planes.Pods.Have != n {
		t.Errorf("pods %+v, want %d", s.Planes.Pods, n)
	}
	if len(s.Planes.Rules) != nodes || s.Coverage.Seen != nodes || s.Coverage.Expected != nodes {
		t.Errorf("rules of %d nodes, coverage %+v, want %d", len(s.Planes.Rules), s.Coverage, nodes)
	}
	for node, p := range s.Planes.Rules {
		if p != want {
			t.Errorf("%s has %+v, want %d", node, p, n)
		}
	}
}

// causal checks an arrived path: the slice after the root, each node after the
// slice (within the errors that the report itself states), as late as kube-proxy
// may be: at most its minimum sync period and the sync after it.
func causal(t *testing.T, p *report.Path, nodes int) {
	t.Helper()
	if p.Slice == nil || p.Slice.LagMS == nil || p.Rules == nil || len(p.Rules.ByNode) != nodes || len(p.Rules.Missing) > 0 {
		t.Errorf("path %s of %s is not whole: slice %+v rules %+v", p.ID, p.Endpoint.Pod, p.Slice, p.Rules)
		return
	}
	if *p.Slice.LagMS < -p.Slice.ErrorMS {
		t.Errorf("path %s: the slice came %.1f ms before its cause (error %.1f ms)", p.ID, -*p.Slice.LagMS, p.Slice.ErrorMS)
	}
	for node, h := range p.Rules.ByNode {
		if h.LagMS == nil || h.FromSliceMS == nil {
			t.Errorf("path %s: %s has no lag", p.ID, node)
			continue
		}
		if *h.FromSliceMS < -h.ErrorMS {
			t.Errorf("path %s: %s came %.1f ms before the slice (error %.1f ms)", p.ID, node, -*h.FromSliceMS, h.ErrorMS)
		}
		// Two periods: a loaded machine may delay a sync, a broken one never ends.
		if *h.FromSliceMS > 5000 {
			t.Errorf("path %s: %s took %.0f ms", p.ID, node, *h.FromSliceMS)
		}
	}
}

func TestScaleFromNothingToTheKernelOfEveryNode(t *testing.T) {
	kubectl(t)
	h := newHome(t)
	code, stdout, stderr := h.run(t, nil, "lab", "--headless", "--nodes", "3", "--output", "json", "--run",
		`kubectl create deployment web --image=nginx --replicas=4 &&
		 kubectl expose deployment web --port=80 --target-port=8080 &&
		 kubectl rollout status deployment/web &&
		 kubectl scale deployment/web --replicas=7 &&
		 kubectl rollout status deployment/web`)
	if code != exitOK {
		t.Fatalf("exit code %d\n%s", code, stderr)
	}
	s := web(t, parse(t, stdout))
	agree(t, s, 7, 3)
	added := map[string]bool{}
	for i := range s.Paths {
		p := &s.Paths[i]
		if p.Op == "add" && p.Status == "arrived" && p.Endpoint.IP != "" {
			causal(t, p, 3)
			added[p.Endpoint.UID] = true
		}
	}
	if len(added) < 7 {
		t.Errorf("%d endpoints arrived, want 7", len(added))
	}
	if left := h.left(t); len(left) > 0 {
		t.Errorf("left behind: %s", left)
	}
}

func TestTheFlatDataplaneConvergesLikeKubeProxys(t *testing.T) {
	kubectl(t)
	h := newHome(t)
	code, stdout, stderr := h.run(t, nil, "lab", "--headless", "--nodes", "3", "--dataplane", "flat", "--output", "json", "--run",
		`kubectl create deployment web --image=nginx --replicas=4 &&
		 kubectl expose deployment web --port=80 --target-port=8080 &&
		 kubectl rollout status deployment/web &&
		 kubectl scale deployment/web --replicas=2 &&
		 until [ "$(kubectl get pods -o name | wc -l)" = 2 ]; do sleep 0.1; done
		 kubectl scale deployment/web --replicas=6 &&
		 kubectl rollout status deployment/web`)
	if code != exitOK {
		t.Fatalf("exit code %d\n%s", code, stderr)
	}
	r := parse(t, stdout)
	if r.Source.Rules != "kernel, flat (3 netns)" {
		t.Errorf("rules: %q", r.Source.Rules)
	}
	s := web(t, r)
	agree(t, s, 6, 3)
	ops := map[string]int{}
	for i := range s.Paths {
		p := &s.Paths[i]
		if p.Status != "arrived" || p.Endpoint.IP == "" {
			continue
		}
		if p.Op == "add" {
			causal(t, p, 3)
		}
		ops[p.Op]++
	}
	if ops["add"] < 6 || ops["remove"] < 2 {
		t.Errorf("arrived: %v, want at least 6 additions and 2 removals", ops)
	}
}

// scaled is a Deployment whose containers go on for a while after SIGTERM, so
// that the last endpoints of a scale to zero are seen serving while terminating.
const scaled = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 7
  selector: {matchLabels: {app: web}}
  template:
    metadata:
      labels: {app: web}
      annotations: {kconverge.dev/stop-after: 6s}
    spec:
      terminationGracePeriodSeconds: 15
      containers: [{name: c, image: nginx}]
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec:
  selector: {app: web}
  ports: [{port: 80, targetPort: 8080}]
`

func TestScalingToZeroIsNoLagAlthoughTerminatingPodsAreRoutedTo(t *testing.T) {
	kubectl(t)
	h := newHome(t)
	code, stdout, stderr := h.run(t, strings.NewReader(scaled), "lab", "--headless", "--nodes", "3", "--output", "json", "--run",
		`set -e
		 pods() { kubectl get pods -l app=web -o name | wc -l; }
		 kubectl apply -f -
		 kubectl rollout status deployment/web
		 kubectl scale deployment/web --replicas=2
		 until [ "$(pods)" = 2 ]; do sleep 0.1; done
		 kubectl scale deployment/web --replicas=0
		 until [ "$(pods)" = 0 ]; do sleep 0.1; done`)
	if code != exitOK {
		t.Fatalf("exit code %d\n%s", code, stderr)
	}
	s := web(t, parse(t, stdout))
	agree(t, s, 0, 3)
	removed := map[string]bool{}
	for i := range s.Paths {
		p := &s.Paths[i]
		if p.Op == "remove" {
			removed[p.Endpoint.UID] = true
		}
		if p.Status == "open" {
			t.Errorf("%s %s (%s) is still open", p.Op, p.Endpoint.Pod, p.Cause)
		}
		// The last pods live for 6 s more: a fallback taken for lag would
		// show as a hop of that length.
		if p.Rules == nil {
			continue
		}
		for node, hop := range p.Rules.ByNode {
			if hop.LagMS != nil && *hop.LagMS > 5000 {
				t.Errorf("%s %s (%s) took %.0f ms on %s", p.Op, p.Endpoint.Pod, p.Cause, *hop.LagMS, node)
			}
		}
	}
	if len(removed) != 7 {
		t.Errorf("%d pods were removed, want 7", len(removed))
	}
}

func TestARecordingReplaysToTheSameReport(t *testing.T) {
	kubectl(t)
	h := newHome(t)
	file := h.dir + "/session.kconverge"
	code, live, stderr := h.run(t, nil, "lab", "--headless", "--nodes", "2", "--output", "json", "--record", file, "--run",
		"kubectl create deployment web --image=nginx --replicas=3 && kubectl expose deployment web --port=80 && kubectl rollout status deployment/web")
	if code != exitOK {
		t.Fatalf("exit code %d\n%s", code, stderr)
	}
	code, replayed, stderr := h.run(t, nil, "replay", file, "--headless", "--output", "json")
	if code != exitOK {
		t.Fatalf("replay: exit code %d\n%s", code, stderr)
	}
	if live != replayed {
		t.Errorf("the replay's report differs from the live one:\n%s", diff(live, replayed))
	}
}

// diff shows the first lines that differ.
func diff(a, b string) string {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range min(len(x), len(y)) {
		if x[i] != y[i] {
			return "line " + strconv.Itoa(i+1) + ":\n- " + x[i] + "\n+ " + y[i]
		}
	}
	return "one is longer"
}
