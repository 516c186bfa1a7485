package apiserver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

func TestAnUpdateFromAnOldVersionConflicts(t *testing.T) {
	_, client := startClient(t)
	maps := client.CoreV1().ConfigMaps("default")
	first := must(maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "c"}, Data: map[string]string{"n": "1"}}, metav1.CreateOptions{}))(t)
	second := first.DeepCopy()
	second.Data["n"] = "2"
	must(maps.Update(t.Context(), second, metav1.UpdateOptions{}))(t)
	first.Data["n"] = "3"
	if _, err := maps.Update(t.Context(), first, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("%v, want 409", err)
	}
	if _, err := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "c"}}, metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
		t.Errorf("%v, want AlreadyExists", err)
	}
	if _, err := maps.Get(t.Context(), "none", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("%v, want NotFound", err)
	}
}

func TestAWatchDeliversChangesInOrderAndBookmarks(t *testing.T) {
	_, client := startClient(t)
	slices := client.DiscoveryV1().EndpointSlices("default")
	// With initial events, the bookmark that ends them carries an annotation.
	w := must(slices.Watch(t.Context(), metav1.ListOptions{
		AllowWatchBookmarks: true, SendInitialEvents: new(true), ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
	}))(t)
	defer w.Stop()
	next := func() watch.Event {
		t.Helper()
		select {
		case e, ok := <-w.ResultChan():
			if !ok {
				t.Fatal("the watch ended")
			}
			return e
		case <-time.After(patience):
			t.Fatal("no event")
		}
		panic("unreachable")
	}
	first := next()
	mark, ok := first.Object.(*discoveryv1.EndpointSlice)
	if first.Type != watch.Bookmark || !ok || mark.Annotations[metav1.InitialEventsAnnotationKey] != "true" {
		t.Fatalf("got %s %v, want the bookmark that ends the initial events", first.Type, first.Object)
	}
	s := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Name: "s"}, AddressType: discoveryv1.AddressTypeIPv4}
	s = must(slices.Create(t.Context(), s, metav1.CreateOptions{}))(t)
	s.Endpoints = []discoveryv1.Endpoint{{Addresses: []string{"10.244.0.1"}}}
	s = must(slices.Update(t.Context(), s, metav1.UpdateOptions{}))(t)
	if err := slices.Delete(t.Context(), "s", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []watch.EventType{watch.Added, watch.Modified, watch.Deleted} {
		e := next()
		for e.Type == watch.Bookmark { // they come when the server likes
			e = next()
		}
		if e.Type != want {
			t.Errorf("got %s, want %s", e.Type, want)
		}
	}
	if s.Generation != 2 {
		t.Errorf("generation %d after one change, want 2", s.Generation)
	}
}

func TestSelectorsFilterListsAndUnknownFieldsAreRefused(t *testing.T) {
	_, client := startClient(t)
	pods := client.CoreV1().Pods("default")
	for i, node := range []string{"node-1", "node-2", "node-1"} {
		p := pod(fmt.Sprintf("p%d", i))
		p.Spec.NodeName, p.Labels = node, map[string]string{"n": fmt.Sprint(i)}
		must(pods.Create(t.Context(), p, metav1.CreateOptions{}))(t)
	}
	for selector, want := range map[string]int{
		"spec.nodeName=node-1": 2, "spec.nodeName=node-1,status.phase=Pending": 2, "status.phase=Running": 0, "metadata.name=p1": 1, "spec.nodeName!=node-1": 1,
	} {
		list := must(pods.List(t.Context(), metav1.ListOptions{FieldSelector: selector}))(t)
		if len(list.Items) != want {
			t.Errorf("%s: %d pods, want %d", selector, len(list.Items), want)
		}
	}
	if list := must(pods.List(t.Context(), metav1.ListOptions{LabelSelector: "n in (0,2)"}))(t); len(list.Items) != 2 {
		t.Errorf("by label: %d pods, want 2", len(list.Items))
	}
	if _, err := pods.List(t.Context(), metav1.ListOptions{FieldSelector: "foo=bar"}); !apierrors.IsBadRequest(err) {
		t.Errorf("foo=bar: %v, want 400", err)
	}
	page := must(pods.List(t.Context(), metav1.ListOptions{Limit: 2}))(t)
	rest := must(pods.List(t.Context(), metav1.ListOptions{Limit: 2, Continue: page.Continue}))(t)
	if len(page.Items) != 2 || len(rest.Items) != 1 || rest.Continue != "" {
		t.Errorf("pages of %d and %d", len(page.Items), len(rest.Items))
	}
}

func TestGenerationCountsChangesOfTheSpecOnly(t *testing.T) {
	_, client := startClient(t)
	deployments := client.AppsV1().Deployments("default")
	d := must(deployments.Create(t.Context(), deployment("web", 2), metav1.CreateOptions{}))(t)
	if d.Generation != 1 {
		t.Errorf("generation %d after create", d.Generation)
	}
	d.Status = appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: 2}
	d.Spec.Replicas = new(int32(9)) // ignored: status only
	d = must(deployments.UpdateStatus(t.Context(), d, metav1.UpdateOptions{}))(t)
	if d.Generation != 1 || *d.Spec.Replicas != 2 || d.Status.Replicas != 2 {
		t.Errorf("after a status update: generation %d, %d replicas, status %+v", d.Generation, *d.Spec.Replicas, d.Status)
	}
	d.Spec.Replicas = new(int32(3))
	d.Status.Replicas = 7 // ignored: spec only
	d = must(deployments.Update(t.Context(), d, metav1.UpdateOptions{}))(t)
	if d.Generation != 2 || *d.Spec.Replicas != 3 || d.Status.Replicas != 2 {
		t.Errorf("after a spec update: generation %d, %d replicas, status %+v", d.Generation, *d.Spec.Replicas, d.Status)
	}
	d = must(deployments.Patch(t.Context(), "web", types.MergePatchType, []byte(`{"metadata":{"labels":{"x":"y"}}}`), metav1.PatchOptions{}))(t)
	if d.Generation != 2 {
		t.Errorf("after a label: generation %d, want 2", d.Generation)
	}
}

func TestDefaultsAreKubernetes(t *testing.T) {
	_, client := startClient(t)
	d := deployment("web", 0)
	d.Spec.Replicas = nil
	d.Spec.Template.Spec.Containers[0].ReadinessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Port: intPort(80)}}}
	d = must(client.AppsV1().Deployments("default").Create(t.Context(), d, metav1.CreateOptions{}))(t)
	raw := string(must(json.Marshal(d.Spec))(t))
	for _, want := range []string{
		`"replicas":1`, `"maxUnavailable":"25%"`, `"maxSurge":"25%"`, `"type":"RollingUpdate"`, `"revisionHistoryLimit":10`, `"progressDeadlineSeconds":600`,
		`"terminationGracePeriodSeconds":30`, `"restartPolicy":"Always"`, `"imagePullPolicy":"Always"`, `"periodSeconds":10`, `"timeoutSeconds":1`,
		`"successThreshold":1`, `"failureThreshold":3`, `"path":"/"`, `"scheme":"HTTP"`, `"dnsPolicy":"ClusterFirst"`,
	} {
		if !strings.Contains(raw, want) {
			t.Errorf("%s is missing in %s", want, raw)
		}
	}
}

func TestBadWorkloadsAreRefused(t *testing.T) {
	_, client := startClient(t)
	for name, change := range map[string]func(*appsv1.Deployment){
		"Bad_Name":             func(*appsv1.Deployment) {},
		"no-selector":          func(d *appsv1.Deployment) { d.Spec.Selector = nil },
		"selector-mismatch":    func(d *appsv1.Deployment) { d.Spec.Template.Labels = map[string]string{"app": "other"} },
		"negative-replicas":    func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(-1)) },
		"no-containers":        func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers = nil },
		"no-image":             func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "" },
		"probe-without-action": func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].ReadinessProbe = &corev1.Probe{} },
		"rollout-cannot-move": func(d *appsv1.Deployment) {
			d.Spec.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{MaxSurge: new(intPort(0)), MaxUnavailable: new(intPort(0))}
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := deployment("web", 1)
			d.Name = name
			change(d)
			_, err := client.AppsV1().Deployments("default").Create(t.Context(), d, metav1.CreateOptions{})
			if !apierrors.IsInvalid(err) {
				t.Errorf("%v, want 422", err)
			}
		})
	}
	d := must(client.AppsV1().Deployments("default").Create(t.Context(), deployment("web", 1), metav1.CreateOptions{}))(t)
	d.Spec.Selector.MatchLabels, d.Spec.Template.Labels = map[string]string{"app": "x"}, map[string]string{"app": "x"}
	if _, err := client.AppsV1().Deployments("default").Update(t.Context(), d, metav1.UpdateOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("changing the selector: %v, want 422", err)
	}
}

// warnings collects what the server warns of.
type warnings struct{ got []string }

func (w *warnings) HandleWarningHeader(_ int, _ string, text string) { w.got = append(w.got, text) }

func TestWhatTheLabCannotHonourIsSaid(t *testing.T) {
	s, _ := startClient(t)
	readiness := func(h corev1.ProbeHandler) *corev1.Probe { return &corev1.Probe{ProbeHandler: h} }
	tcp := corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intPort(80)}}
	for name, change := range map[string]func(*corev1.PodSpec){
		"spec.initContainers":        func(p *corev1.PodSpec) { p.InitContainers = []corev1.Container{{Name: "i", Image: "x"}} },
		"spec.activeDeadlineSeconds": func(p *corev1.PodSpec) { n := int64(5); p.ActiveDeadlineSeconds = &n },
		"spec.volumes":               func(p *corev1.PodSpec) { p.Volumes = []corev1.Volume{{Name: "v"}} },
		"spec.affinity":              func(p *corev1.PodSpec) { p.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{}} },
		"spec.containers[0].livenessProbe": func(p *corev1.PodSpec) {
			p.Containers[0].LivenessProbe = readiness(corev1.ProbeHandler{GRPC: &corev1.GRPCAction{Port: 1}})
		},
		"spec.containers[0].readinessProbe": func(p *corev1.PodSpec) {
			p.Containers[0].ReadinessProbe = readiness(corev1.ProbeHandler{Exec: &corev1.ExecAction{}})
		},
		"": func(p *corev1.PodSpec) {
			p.Containers[0].ReadinessProbe, p.Containers[0].LivenessProbe, p.Containers[0].StartupProbe = readiness(tcp), readiness(tcp), readiness(tcp)
		},
	} {
		heard := &warnings{}
		config := s.Config()
		config.WarningHandler = heard
		p := pod("")
		p.GenerateName = "p-"
		change(&p.Spec)
		must(clientFor(t, config).CoreV1().Pods("default").Create(t.Context(), p, metav1.CreateOptions{}))(t)
		switch {
		case name == "" && len(heard.got) > 0:
			t.Errorf("warned %q of what the lab honours", heard.got)
		case name != "" && (len(heard.got) != 1 || !strings.HasPrefix(heard.got[0], name+": ")):
			t.Errorf("%s: warned %q", name, heard.got)
		}
	}
}

// Both do what they say: the second ends the pods that run there.
func TestTaintsNeedNoWarning(t *testing.T) {
	s, _ := startClient(t)
	for _, effect := range []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute} {
		heard := &warnings{}
		config := s.Config()
		config.WarningHandler = heard
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: strings.ToLower(string(effect))}, Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: "k", Effect: effect}}}}
		must(clientFor(t, config).CoreV1().Nodes().Create(t.Context(), n, metav1.CreateOptions{}))(t)
		if len(heard.got) != 0 {
			t.Errorf("%s: warned %q", effect, heard.got)
		}
	}
}

func TestDeletionPoliciesBecomeFinalizersForTheGarbageCollector(t *testing.T) {
	_, client := startClient(t)
	deployments := client.AppsV1().Deployments("default")
	for policy, want := range map[metav1.DeletionPropagation]string{
		metav1.DeletePropagationForeground: metav1.FinalizerDeleteDependents,
		metav1.DeletePropagationOrphan:     metav1.FinalizerOrphanDependents,
		metav1.DeletePropagationBackground: "",
	} {
		name := strings.ToLower(string(policy))
		must(deployments.Create(t.Context(), deployment(name, 1), metav1.CreateOptions{}))(t)
		if err := deployments.Delete(t.Context(), name, metav1.DeleteOptions{PropagationPolicy: &policy}); err != nil {
			t.Fatal(err)
		}
		d, err := deployments.Get(t.Context(), name, metav1.GetOptions{})
		if want == "" {
			if !apierrors.IsNotFound(err) {
				t.Errorf("%s: %v, want NotFound", policy, err)
			}
			continue
		}
		if err != nil || len(d.Finalizers) != 1 || d.Finalizers[0] != want || d.DeletionTimestamp == nil {
			t.Errorf("%s: %v, finalizers %v", policy, err, d.Finalizers)
			continue
		}
		// Removing the finalizer, as the collector does, lets it go.
		d.Finalizers = nil
		must(deployments.Update(t.Context(), d, metav1.UpdateOptions{}))(t)
		eventually(t, func(ctx context.Context) error {
			if _, err := deployments.Get(ctx, name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				return fmt.Errorf("%s is still there: %v", name, err)
			}
			return nil
		})
	}
}
