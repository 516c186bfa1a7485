package workloads

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
)

// stale is a ReplicaSet controller whose cache shows only what the test puts
// there: the API server runs ahead of it as far as the test likes.
type stale struct {
	t       *testing.T
	c       *replicaSetController
	client  *fake.Clientset
	clock   *clocktesting.FakeClock
	key     string
	created []*corev1.Pod
	deleted []string
	refuse  int // how many creations to fail
}

func newStale(t *testing.T, replicas int32) *stale {
	s := &stale{t: t, client: fake.NewClientset(), clock: clocktesting.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))}
	s.client.PrependReactor("create", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
		if s.refuse > 0 {
			s.refuse--
			return true, nil, errors.New("refused for the test")
		}
		p := a.(clienttesting.CreateAction).GetObject().(*corev1.Pod).DeepCopy()
		p.Name = fmt.Sprintf("%s%d", p.GenerateName, len(s.created))
		p.UID = types.UID("uid-" + p.Name)
		p.CreationTimestamp = metav1.NewTime(s.clock.Now())
		s.created = append(s.created, p)
		return true, p, nil
	})
	s.client.PrependReactor("delete", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
		s.deleted = append(s.deleted, a.(clienttesting.DeleteAction).GetName())
		return true, nil, nil
	})
	f := informers.NewSharedInformerFactory(s.client, 0)
	caches := newSharedCaches(f)
	s.c = newReplicaSetController(s.client, clock.RealClock{}, caches, record.NewFakeRecorder(100))
	s.c.clock, s.c.expectations = s.clock, newExpectations(s.clock)
	t.Cleanup(s.c.queue.ShutDown)
	labels := map[string]string{"app": "web"}
	rs := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default", UID: "rs", Generation: 1},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}},
		},
	}
	if err := s.client.Tracker().Add(rs); err != nil {
		t.Fatal(err)
	}
	if err := caches.replicaSets.GetIndexer().Add(rs); err != nil {
		t.Fatal(err)
	}
	s.key = keyOf(rs)
	return s
}

func (s *stale) sync() error { return s.c.sync(context.Background(), s.key) }

func (s *stale) mustSync() {
	s.t.Helper()
	if err := s.sync(); err != nil {
		s.t.Fatal(err)
	}
}

// resize changes the ReplicaSet in the cache.
func (s *stale) resize(n int32) {
	rs, err := s.c.caches.replicaSetLister.ReplicaSets("default").Get("web")
	if err != nil {
		s.t.Fatal(err)
	}
	rs = rs.DeepCopy()
	rs.Spec.Replicas = &n
	if err := s.c.caches.replicaSets.GetIndexer().Update(rs); err != nil {
		s.t.Fatal(err)
	}
}

// show lets the cache see a pod.
func (s *stale) show(p *corev1.Pod) {
	if err := s.c.caches.pods.GetIndexer().Add(p); err != nil {
		s.t.Fatal(err)
	}
	s.c.podAdded(p)
}

// mark lets the cache see that a pod is being deleted.
func (s *stale) mark(p *corev1.Pod) {
	cp := p.DeepCopy()
	now := metav1.NewTime(s.clock.Now())
	cp.DeletionTimestamp = &now
	if err := s.c.caches.pods.GetIndexer().Update(cp); err != nil {
		s.t.Fatal(err)
	}
	s.c.podUpdated(p, cp)
}

func (s *stale) want(created, deleted int) {
	s.t.Helper()
	if len(s.created) != created || len(s.deleted) != deleted {
		s.t.Fatalf("%d pods created and %d deleted, want %d and %d", len(s.created), len(s.deleted), created, deleted)
	}
}

func TestAStaleCacheNeverLeadsToMorePodsThanWanted(t *testing.T) {
	s := newStale(t, 3)
	s.mustSync()
	s.want(3, 0)
	for range 5 {
		s.mustSync()
	}
	s.want(3, 0)
	for _, p := range s.created[:2] {
		s.show(p)
		s.mustSync()
	}
	s.want(3, 0)
	s.show(s.created[2])
	s.resize(5)
	s.mustSync()
	s.want(5, 0)
}

func TestAStaleCacheNeverLeadsToMoreDeletionsThanWanted(t *testing.T) {
	s := newStale(t, 4)
	s.mustSync()
	for _, p := range s.created {
		s.show(p)
	}
	s.resize(2)
	s.mustSync()
	s.want(4, 2)
	for range 5 {
		s.mustSync()
	}
	s.want(4, 2)
	for _, name := range append([]string(nil), s.deleted...) {
		for _, p := range s.created {
			if p.Name == name {
				s.mark(p)
			}
		}
		s.mustSync()
	}
	s.want(4, 2)
	s.resize(1)
	s.mustSync()
	s.want(4, 3)
}

func TestPodsThatCouldNotBeCreatedAreTriedAgain(t *testing.T) {
	s := newStale(t, 5)
	s.refuse = 1
	if err := s.sync(); err == nil {
		t.Fatal("the failure is not reported")
	}
	// The first batch is one pod; the rest is not even tried.
	s.want(0, 0)
	rs, err := s.client.AppsV1().ReplicaSets("default").Get(context.Background(), "web", metav1.GetOptions{})
	if err != nil || len(rs.Status.Conditions) != 1 || rs.Status.Conditions[0].Reason != "FailedCreate" {
		t.Errorf("conditions %+v, %v", rs.Status.Conditions, err)
	}
	s.mustSync()
	s.want(5, 0)
	for range 3 {
		s.mustSync()
	}
	s.want(5, 0)
}

func TestACreationThatIsNeverSeenIsForgottenAfterFiveMinutes(t *testing.T) {
	s := newStale(t, 2)
	s.mustSync()
	s.clock.Step(expectationTimeout)
	s.mustSync()
	s.want(2, 0)
	s.clock.Step(time.Second)
	s.mustSync()
	s.want(4, 0)
}

func TestAPodFirstSeenTerminatingFulfilsNoCreation(t *testing.T) {
	s := newStale(t, 2)
	s.mustSync()
	old := s.created[0].DeepCopy()
	old.Name, old.UID = "web-old", "uid-old"
	now := metav1.NewTime(s.clock.Now())
	old.DeletionTimestamp = &now
	s.show(old)
	s.show(s.created[0])
	s.mustSync()
	s.want(2, 0)
}

func pod(name string, change ...func(p *corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), CreationTimestamp: metav1.NewTime(t0.Add(-time.Hour))},
		Spec:       corev1.PodSpec{NodeName: "node-" + name},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{
			Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(t0.Add(-time.Hour)),
		}}},
	}
	for _, f := range change {
		f(p)
	}
	return p
}

var t0 = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func TestThePodThatIsLeastMissedIsDeletedFirst(t *testing.T) {
	unbound := func(p *corev1.Pod) { p.Spec.NodeName = "" }
	pending := func(p *corev1.Pod) { p.Status.Phase = corev1.PodPending }
	unready := func(p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionFalse }
	cheap := func(p *corev1.Pod) { p.Annotations = map[string]string{corev1.PodDeletionCost: "-1"} }
	on := func(n string) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Spec.NodeName = n } }
	readyFor := func(d time.Duration) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Status.Conditions[0].LastTransitionTime = metav1.NewTime(t0.Add(-d)) }
	}
	restarted := func(p *corev1.Pod) { p.Status.ContainerStatuses = []corev1.ContainerStatus{{RestartCount: 2}} }
	age := func(d time.Duration) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.CreationTimestamp = metav1.NewTime(t0.Add(-d)) }
	}
	for _, tc := range []struct {
		name         string
		first, other []func(*corev1.Pod)
	}{
		{"one without a node before one with", []func(*corev1.Pod){unbound}, []func(*corev1.Pod){pending}},
		{"a pending one before a running one", []func(*corev1.Pod){pending}, []func(*corev1.Pod){unready}},
		{"one that is not ready before one that is", []func(*corev1.Pod){unready}, []func(*corev1.Pod){cheap}},
		{"the lower deletion cost first", []func(*corev1.Pod){cheap}, []func(*corev1.Pod){on("full")}},
		{"one on a node with many of its kind before one alone", []func(*corev1.Pod){on("full")}, []func(*corev1.Pod){readyFor(time.Minute)}},
		{"the one that is ready for a shorter time first", []func(*corev1.Pod){readyFor(time.Minute)}, []func(*corev1.Pod){restarted}},
		{"the one that restarted more often first", []func(*corev1.Pod){restarted}, []func(*corev1.Pod){age(time.Minute)}},
		{"the younger first", []func(*corev1.Pod){age(time.Minute)}, nil},
		{"of about the same age the one with the lower UID", []func(*corev1.Pod){age(61 * time.Minute)}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a, b := pod("a", tc.first...), pod("b", tc.other...)
			crowd := []*corev1.Pod{a, b, pod("c", on("full")), pod("d", on("full"))}
			for _, both := range [][]*corev1.Pod{{a, b}, {b, a}} {
				if got := podsToDelete(both, crowd, 1, t0); len(got) != 1 || got[0] != a {
					t.Errorf("deleted %s", got[0].Name)
				}
			}
		})
	}
}
