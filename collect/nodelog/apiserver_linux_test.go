package nodelog

import (
	"context"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kconverge/kconverge/engine/lab/controlplane"
)

// kubelets answers for pods/log as the kubelets of all nodes do to the API server
// (k8s.io/kubernetes pkg/kubelet/server/server.go, getContainerLogs).
func (c *cluster) kubelets(w http.ResponseWriter, r *http.Request) {
	path, ok := strings.CutPrefix(r.URL.Path, "/containerLogs/"+DefaultNamespace+"/")
	pod, container, ok2 := strings.Cut(path, "/")
	if !ok || !ok2 {
		c.t.Errorf("the API server asks for %s", r.URL.Path)
		w.WriteHeader(http.StatusNotFound)
		return
	}
	q := r.URL.Query()
	q.Set("container", container)
	r.URL.RawQuery = q.Encode()
	c.log(w, r, pod)
}

// Five hundred agents through pods/log of a real API server: its own list of the
// pods, its own way to the kubelets, its own ends of broken logs.
func TestFiveHundredAgentsThroughARealAPIServer(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: building Kubernetes takes minutes the first time")
	}
	build := exec.CommandContext(t.Context(), "../../testdata/cluster/build.sh", "etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
	out, err := build.Output()
	if err != nil {
		t.Fatalf("build Kubernetes' programs: %v", err)
	}
	programs, err := controlplane.Find(t.Context(), strings.TrimSpace(string(out)), "v1.37.2")
	if err != nil {
		t.Fatal(err)
	}
	c := newCluster(t)
	c.server.Config.Handler = http.HandlerFunc(c.kubelets)
	address := c.server.Listener.Addr().String()
	plane, err := controlplane.Start(t.Context(), controlplane.Options{
		Programs: programs, Name: "followed", PodCIDR: "10.244.0.0/16", ServiceCIDR: "10.96.0.0/16",
		DialNode: func(ctx context.Context, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", address)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := plane.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	c.remote, c.listEvery = plane.Config(), time.Second
	c.remote.QPS = -1
	register(t, kubernetes.NewForConfigOrDie(c.remote))
	fiveHundred(t, c)
}

// register makes the nodes and the agents' pods, as running ones.
func register(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	ctx := t.Context()
	_, err := client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: DefaultNamespace}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(20)
	// Pods need their namespace's account, which the controller manager makes.
	for {
		if _, err := client.CoreV1().ServiceAccounts(DefaultNamespace).Get(ctx, "default", metav1.GetOptions{}); err == nil {
			break
		}
		select {
		case <-ctx.Done():
			t.Fatal("no ServiceAccount was made")
		case <-time.After(20 * time.Millisecond):
		}
	}
	now := metav1.Now()
	for i := range agents {
		g.Go(func() error {
			_, err := client.CoreV1().Nodes().Create(ctx, &corev1.Node{
				ObjectMeta: metav1.ObjectMeta{Name: nodeName(i)},
				Status: corev1.NodeStatus{
					Addresses:       []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "198.18.0.1"}},
					DaemonEndpoints: corev1.NodeDaemonEndpoints{KubeletEndpoint: corev1.DaemonEndpoint{Port: 10250}},
					Conditions:      []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: now, LastTransitionTime: now}},
				},
			}, metav1.CreateOptions{})
			if err != nil {
				return err
			}
			pods := client.CoreV1().Pods(DefaultNamespace)
			p, err := pods.Create(ctx, &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Name: agentName(i), Labels: map[string]string{AgentLabel: AgentName}},
				Spec: corev1.PodSpec{
					NodeName: nodeName(i), AutomountServiceAccountToken: new(false), HostNetwork: true,
					Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
					Containers:  []corev1.Container{{Name: Container, Image: "agent"}},
				},
			}, metav1.CreateOptions{})
			if err != nil {
				return err
			}
			p.Status = corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{{
				Name: Container, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}},
			}}}
			_, err = pods.UpdateStatus(ctx, p, metav1.UpdateOptions{})
			return err
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
}
