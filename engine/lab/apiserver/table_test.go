package apiserver_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/kconverge/kconverge/engine/lab/apiserver"
)

// tableOf asks for a list as kubectl does: the header, then a line for each
// row, cells between bars. Wide cells are left out unless asked for.
func tableOf(t *testing.T, client kubernetes.Interface, path string, wide bool) []string {
	t.Helper()
	raw := must(client.Discovery().RESTClient().Get().AbsPath(path).
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").DoRaw(t.Context()))(t)
	var table metav1.Table
	if err := json.Unmarshal(raw, &table); err != nil {
		t.Fatal(err)
	}
	lines := make([][]string, 1+len(table.Rows))
	for i, c := range table.ColumnDefinitions {
		if c.Priority > 0 && !wide {
			continue
		}
		lines[0] = append(lines[0], strings.ToUpper(c.Name))
		for j, r := range table.Rows {
			lines[j+1] = append(lines[j+1], fmt.Sprint(r.Cells[i]))
		}
	}
	out := make([]string, 0, len(lines))
	for _, l := range lines {
		out = append(out, strings.Join(l, "|"))
	}
	return out
}

func expectTable(t *testing.T, client kubernetes.Interface, path string, wide bool, want ...string) {
	t.Helper()
	got := tableOf(t, client, path, wide)
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%s:\n%s\nwant\n%s", path, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestTablesAreWhatKubectlShows(t *testing.T) {
	// Ages come from the clock the server is given.
	clock := clocktesting.NewFakePassiveClock(time.Now())
	s := start(t, apiserver.Options{Clock: clock})
	client := clientOf(t, s)
	pods := client.CoreV1().Pods("default")

	running := bound(t, pods, pod("a-running"), "node-1")
	running.Status.Phase, running.Status.PodIP = corev1.PodRunning, "10.244.0.3"
	running.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "c", Ready: true, RestartCount: 2, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
	must(pods.UpdateStatus(t.Context(), running, metav1.UpdateOptions{}))(t)
	leaving := bound(t, pods, pod("b-leaving"), "node-2")
	leaving.Status.Phase = corev1.PodRunning
	must(pods.UpdateStatus(t.Context(), leaving, metav1.UpdateOptions{}))(t)
	if err := pods.Delete(t.Context(), "b-leaving", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	last := must(pods.Create(t.Context(), pod("c-pending"), metav1.CreateOptions{}))(t)

	d := must(client.AppsV1().Deployments("default").Create(t.Context(), deployment("web", 3), metav1.CreateOptions{}))(t)
	d.Status.Replicas, d.Status.ReadyReplicas, d.Status.UpdatedReplicas, d.Status.AvailableReplicas = 3, 1, 2, 1
	must(client.AppsV1().Deployments("default").UpdateStatus(t.Context(), d, metav1.UpdateOptions{}))(t)

	must(client.CoreV1().Services("default").Create(t.Context(), service("web", corev1.ServiceSpec{
		Type: corev1.ServiceTypeNodePort, ClusterIP: "10.96.0.40", Selector: map[string]string{"app": "web"},
		Ports: []corev1.ServicePort{{Port: 80, NodePort: 30001}},
	}), metav1.CreateOptions{}))(t)
	must(client.DiscoveryV1().EndpointSlices("default").Create(t.Context(), &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Name: "web-1"}, AddressType: discoveryv1.AddressTypeIPv4,
		Ports:     []discoveryv1.EndpointPort{{Port: new(int32(8080))}},
		Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.244.0.1"}}, {Addresses: []string{"10.244.0.2"}}, {Addresses: []string{"10.244.0.3"}}, {Addresses: []string{"10.244.0.4"}}},
	}, metav1.CreateOptions{}))(t)
	must(client.CoreV1().Endpoints("default").Create(t.Context(), &corev1.Endpoints{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Subsets:    []corev1.EndpointSubset{{Addresses: []corev1.EndpointAddress{{IP: "10.244.0.1"}}, Ports: []corev1.EndpointPort{{Port: 8080}}}},
	}, metav1.CreateOptions{}))(t)
	must(client.CoreV1().Nodes().Create(t.Context(), &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "node-1", Labels: map[string]string{"node-role.kubernetes.io/worker": ""}},
		Spec:       corev1.NodeSpec{Unschedulable: true},
		Status: corev1.NodeStatus{
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
			Addresses:  []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "198.18.0.1"}},
			NodeInfo:   corev1.NodeSystemInfo{KubeletVersion: "v1.37.2"},
		},
	}, metav1.CreateOptions{}))(t)
	must(client.CoreV1().Events("default").Create(t.Context(), &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Name: "e", Namespace: "default"},
		InvolvedObject: corev1.ObjectReference{Kind: "Deployment", Name: "web", Namespace: "default"},
		Type:           "Normal", Reason: "ScalingReplicaSet", Message: "Scaled up\n", LastTimestamp: last.CreationTimestamp, FirstTimestamp: last.CreationTimestamp,
		Source: corev1.EventSource{Component: "deployment-controller"},
	}, metav1.CreateOptions{}))(t)
	const age = "10y"
	clock.SetTime(last.CreationTimestamp.Add(10*365*24*time.Hour + time.Hour))

	const v1 = "/api/v1/namespaces/default/"
	expectTable(t, client, v1+"pods", false,
		"NAME|READY|STATUS|RESTARTS|AGE",
		"a-running|1/1|Running|2|"+age,
		"b-leaving|0/1|Terminating|0|"+age,
		"c-pending|0/1|Pending|0|"+age)
	expectTable(t, client, v1+"pods/a-running", true,
		"NAME|READY|STATUS|RESTARTS|AGE|IP|NODE|NOMINATED NODE|READINESS GATES",
		"a-running|1/1|Running|2|"+age+"|10.244.0.3|node-1|<none>|<none>")
	expectTable(t, client, "/apis/apps/v1/namespaces/default/deployments", true,
		"NAME|READY|UP-TO-DATE|AVAILABLE|AGE|CONTAINERS|IMAGES|SELECTOR",
		"web|1/3|2|1|"+age+"|c|nginx|app=web")
	expectTable(t, client, v1+"services", true,
		"NAME|TYPE|CLUSTER-IP|EXTERNAL-IP|PORT(S)|AGE|SELECTOR",
		"web|NodePort|10.96.0.40|<none>|80:30001/TCP|"+age+"|app=web")
	expectTable(t, client, "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices", false,
		"NAME|ADDRESSTYPE|PORTS|ENDPOINTS|AGE",
		"web-1|IPv4|8080|10.244.0.1,10.244.0.2,10.244.0.3 + 1 more...|"+age)
	expectTable(t, client, v1+"endpoints", false,
		"NAME|ENDPOINTS|AGE",
		"web|10.244.0.1:8080|"+age)
	expectTable(t, client, "/api/v1/nodes", true,
		"NAME|STATUS|ROLES|AGE|VERSION|INTERNAL-IP|EXTERNAL-IP|OS-IMAGE|KERNEL-VERSION|CONTAINER-RUNTIME",
		"node-1|Ready,SchedulingDisabled|worker|"+age+"|v1.37.2|198.18.0.1|<none>|<unknown>|<unknown>|<unknown>")
	expectTable(t, client, v1+"events", true,
		"LAST SEEN|TYPE|REASON|OBJECT|SUBOBJECT|SOURCE|MESSAGE|FIRST SEEN|COUNT|NAME",
		age+"|Normal|ScalingReplicaSet|deployment/web||deployment-controller|Scaled up|"+age+"|1|e")
	expectTable(t, client, "/api/v1/namespaces", false,
		"NAME|STATUS|AGE",
		"default|Active|"+age,
		"kube-system|Active|"+age)
}

func TestDiscoveryNamesWhatKubectlTypes(t *testing.T) {
	_, client := startClient(t)
	_, lists, err := client.Discovery().ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]metav1.APIResource{}
	for _, l := range lists {
		for _, r := range l.APIResources {
			got[l.GroupVersion+"/"+r.Name] = r
		}
	}
	for name, short := range map[string]string{
		"v1/pods": "po", "v1/services": "svc", "v1/nodes": "no", "v1/namespaces": "ns", "v1/endpoints": "ep", "v1/events": "ev",
		"v1/configmaps": "cm", "apps/v1/deployments": "deploy", "apps/v1/replicasets": "rs",
	} {
		if r := got[name]; len(r.ShortNames) != 1 || r.ShortNames[0] != short {
			t.Errorf("%s: short names %v, want %s", name, r.ShortNames, short)
		}
	}
	for _, name := range []string{"v1/pods", "v1/services", "apps/v1/deployments", "apps/v1/replicasets"} {
		if r := got[name]; len(r.Categories) != 1 || r.Categories[0] != "all" {
			t.Errorf("%s: categories %v, want all", name, r.Categories)
		}
	}
	if r := got["apps/v1/deployments/scale"]; r.Group != "autoscaling" || r.Version != "v1" || r.Kind != "Scale" {
		t.Errorf("deployments/scale is %s/%s %s", r.Group, r.Version, r.Kind)
	}
	if r := got["v1/pods/eviction"]; r.Group != "policy" || r.Version != "v1" || r.Kind != "Eviction" {
		t.Errorf("pods/eviction is %s/%s %s", r.Group, r.Version, r.Kind)
	}
}
