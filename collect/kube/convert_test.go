package kube

import (
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/kconverge/kconverge/collect"
)

var t0 = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func at(seconds int) metav1.Time { return metav1.NewTime(t0.Add(time.Duration(seconds) * time.Second)) }

func addrs(s ...string) (out []netip.Addr) {
	for _, a := range s {
		out = append(out, netip.MustParseAddr(a))
	}
	return out
}

func same(t *testing.T, got, want any) {
	t.Helper()
	if d := cmp.Diff(want, got, cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{})); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

// writes are managed fields with a time each.
func writes(times ...metav1.Time) (out []metav1.ManagedFieldsEntry) {
	for _, t := range times {
		out = append(out, metav1.ManagedFieldsEntry{Manager: "m", Operation: "Update", Time: &t})
	}
	return append(out, metav1.ManagedFieldsEntry{Manager: "timeless"})
}

func TestConvertPodTakesEveryFact(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	running := func(s int) corev1.ContainerState {
		return corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at(s)}}
	}
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Labels: map[string]string{"app": "web", "pod-template-hash": "7d9c"}, CreationTimestamp: at(0),
			DeletionTimestamp: ptr.To(at(100)), DeletionGracePeriodSeconds: ptr.To(int64(30)),
			OwnerReferences: []metav1.OwnerReference{
				{Kind: "Other", Name: "no", UID: "1"},
				{Kind: "ReplicaSet", Name: "web-7d9c", UID: "2", Controller: ptr.To(true)}},
		},
		Spec: corev1.PodSpec{
			NodeName: "n1", HostNetwork: true,
			Containers: []corev1.Container{
				{Name: "a", Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}, {ContainerPort: 1}},
					ReadinessProbe: &corev1.Probe{PeriodSeconds: 2}},
				{Name: "b", ReadinessProbe: &corev1.Probe{PeriodSeconds: 5, SuccessThreshold: 2, FailureThreshold: 4}},
			},
			InitContainers: []corev1.Container{
				{Name: "init", Ports: []corev1.ContainerPort{{Name: "no", ContainerPort: 2}}},
				{Name: "side", RestartPolicy: &always, Ports: []corev1.ContainerPort{{Name: "dns", ContainerPort: 53, Protocol: "UDP"}}},
			},
		},
		Status: corev1.PodStatus{
			Phase: "Running", PodIPs: []corev1.PodIP{{IP: "10.0.0.5"}, {IP: "fd00::5"}},
			Conditions: []corev1.PodCondition{
				{Type: "PodScheduled", Status: "True", LastTransitionTime: at(1)},
				{Type: "Initialized", Status: "True", LastTransitionTime: at(2)},
				{Type: "ContainersReady", Status: "False", LastTransitionTime: at(3), Reason: "NotYet"},
				{Type: "Ready", Status: "Unknown", LastTransitionTime: at(4)},
				{Type: "DisruptionTarget", Status: "True", LastTransitionTime: at(5), Reason: "EvictionByEvictionAPI"},
			},
			InitContainerStatuses: []corev1.ContainerStatus{
				{Name: "init", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: at(90)}}},
				{Name: "side", State: running(7)}},
			ContainerStatuses: []corev1.ContainerStatus{
				{Name: "a", State: running(9)},
				{Name: "b", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: at(20)}}}},
		},
	}
	same(t, ConvertPod(p), &collect.Pod{
		Labels: map[string]string{"app": "web", "pod-template-hash": "7d9c"}, Node: "n1", IPs: addrs("10.0.0.5", "fd00::5"),
		Phase: "Running", HostNetwork: true,
		Ports:   []collect.NamedPort{{Name: "http", Port: 8080, Protocol: "TCP"}, {Name: "dns", Port: 53, Protocol: "UDP"}},
		Owner:   &collect.Owner{Kind: "ReplicaSet", Name: "web-7d9c", UID: "2"},
		Created: t0, Scheduled: &collect.Condition{Status: true, Since: at(1).Time}, Initialized: &collect.Condition{Status: true, Since: at(2).Time},
		ContainersReady: &collect.Condition{Since: at(3).Time, Reason: "NotYet"}, Ready: &collect.Condition{Since: at(4).Time},
		Disruption: &collect.Condition{Status: true, Since: at(5).Time, Reason: "EvictionByEvictionAPI"},
		Started:    at(9).Time, Deletion: at(100).Time, Grace: 30 * time.Second,
		ReadinessPeriod: 5 * time.Second, ReadinessSuccessThreshold: 2, ReadinessFailureThreshold: 4, Revision: "7d9c",
	})
	// The last running one ends, one waits for its restart.
	p.Status.ContainerStatuses[0] = corev1.ContainerStatus{Name: "a", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{}},
		LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: at(41)}}}
	p.Status.InitContainerStatuses[1].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: at(40)}}
	if got := ConvertPod(p); !got.Stopped.Equal(at(41).Time) || !got.Started.IsZero() {
		t.Errorf("started %v, stopped %v, want never and %v", got.Started, got.Stopped, at(41))
	}
	p.Labels["app"] = "changed"
	if got := ConvertPod(p); got.Labels["app"] != "changed" {
		t.Error("labels are not read")
	}
}

func TestConvertPodTellsWhyContainersWait(t *testing.T) {
	waiting := func(reason string, restarts int32) corev1.ContainerStatus {
		return corev1.ContainerStatus{RestartCount: restarts, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}}
	}
	for _, tc := range []struct {
		name     string
		init     []corev1.ContainerStatus
		main     []corev1.ContainerStatus
		waiting  string
		restarts int32
	}{
		{name: "none"},
		{name: "being made", main: []corev1.ContainerStatus{waiting("ContainerCreating", 0), waiting("PodInitializing", 0)}},
		{name: "crashes", main: []corev1.ContainerStatus{{RestartCount: 2, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}, waiting("CrashLoopBackOff", 5)}, waiting: "CrashLoopBackOff", restarts: 7},
		{name: "the first of several", init: []corev1.ContainerStatus{waiting("ImagePullBackOff", 1)}, main: []corev1.ContainerStatus{waiting("CrashLoopBackOff", 2)}, waiting: "ImagePullBackOff", restarts: 3},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := ConvertPod(&corev1.Pod{Status: corev1.PodStatus{InitContainerStatuses: tc.init, ContainerStatuses: tc.main}})
			if got.Waiting != tc.waiting || got.Restarts != tc.restarts {
				t.Errorf("waits for %q with %d restarts, want %q and %d", got.Waiting, got.Restarts, tc.waiting, tc.restarts)
			}
		})
	}
}

func TestConvertPodCopiesMaps(t *testing.T) {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"a": "1"}}, Status: corev1.PodStatus{PodIP: "010.0.0.5"}}
	got := ConvertPod(p)
	p.Labels["a"] = "2"
	same(t, got, &collect.Pod{Labels: map[string]string{"a": "1"}, IPs: addrs("10.0.0.5")})
}

func TestConvertService(t *testing.T) {
	s := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"service.kubernetes.io/service-proxy-name": "mine"}, CreationTimestamp: at(1), ManagedFields: writes(at(3), at(2))},
		Spec: corev1.ServiceSpec{
			Type: "LoadBalancer", Selector: map[string]string{"app": "web"}, ClusterIP: "10.96.0.9", ClusterIPs: []string{"10.96.0.9", "fd00::9"},
			IPFamilies: []corev1.IPFamily{"IPv4", "IPv6"}, ExternalIPs: []string{"192.0.2.1"}, PublishNotReadyAddresses: true,
			SessionAffinity:       "ClientIP",
			SessionAffinityConfig: &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: ptr.To[int32](600)}},
			ExternalTrafficPolicy: "Local", InternalTrafficPolicy: ptr.To(corev1.ServiceInternalTrafficPolicyLocal),
			TrafficDistribution: ptr.To("PreferSameZone"), HealthCheckNodePort: 31999,
			LoadBalancerSourceRanges: []string{" 10.0.0.7/8 ", "fd00::/16", "nonsense"},
			Ports: []corev1.ServicePort{
				{Name: "a", Port: 80, TargetPort: intstr.FromString("http"), NodePort: 30080},
				{Name: "b", Port: 53, Protocol: "UDP", TargetPort: intstr.FromInt32(5353)}, {Name: "c", Port: 7}},
		},
		Status: corev1.ServiceStatus{LoadBalancer: corev1.LoadBalancerStatus{Ingress: []corev1.LoadBalancerIngress{
			{IP: "203.0.113.1"}, {IP: "203.0.113.2", IPMode: ptr.To(corev1.LoadBalancerIPModeVIP)},
			{IP: "203.0.113.3", IPMode: ptr.To(corev1.LoadBalancerIPModeProxy)}, {Hostname: "lb.example"}}}},
	}
	same(t, ConvertService(s), &collect.Service{
		Labels: s.Labels, Created: at(1).Time, Written: at(3).Time, Kind: "LoadBalancer", Selector: map[string]string{"app": "web"},
		Ports: []collect.ServicePort{
			{Name: "a", Protocol: "TCP", Port: 80, NodePort: 30080, TargetName: "http"},
			{Name: "b", Protocol: "UDP", Port: 53, Target: 5353}, {Name: "c", Protocol: "TCP", Port: 7, Target: 7}},
		ClusterIPs: addrs("10.96.0.9", "fd00::9"), Families: []collect.Family{"IPv4", "IPv6"}, ExternalIPs: addrs("192.0.2.1"),
		LoadBalancerIPs: addrs("203.0.113.1", "203.0.113.2"), PublishNotReadyAddresses: true,
		InternalPolicy: "Local", ExternalPolicy: "Local", SessionAffinity: "ClientIP", AffinityTimeout: 10 * time.Minute, TrafficDistribution: "PreferSameZone", ProxyName: "mine",
		SourceRanges: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/16")}, HealthCheckPort: 31999,
	})
	same(t, ConvertService(&corev1.Service{Spec: corev1.ServiceSpec{ClusterIP: "None", ClusterIPs: []string{"None"}}}),
		&collect.Service{Kind: "ClusterIP", Headless: true, InternalPolicy: "Cluster", ExternalPolicy: "Cluster"})
}

func TestConvertEndpointSlice(t *testing.T) {
	s := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{CreationTimestamp: at(1), ManagedFields: writes(at(7), at(10), at(8)), Labels: map[string]string{
			"kubernetes.io/service-name": "web", "endpointslice.kubernetes.io/managed-by": "me", "service.kubernetes.io/headless": ""},
			Annotations: map[string]string{"endpoints.kubernetes.io/last-change-trigger-time": "2026-03-01T12:00:09Z"}},
		AddressType: "IPv4",
		Ports:       []discoveryv1.EndpointPort{{Name: ptr.To("http"), Port: ptr.To(int32(8080)), Protocol: ptr.To(corev1.ProtocolUDP)}, {Port: ptr.To(int32(1))}, {Name: ptr.To("any")}},
		Endpoints: []discoveryv1.Endpoint{
			{Addresses: []string{"10.0.0.1", "10.0.0.9"}},
			{Addresses: []string{"10.0.0.2"}, Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(false), Serving: ptr.To(true), Terminating: ptr.To(true)},
				NodeName: ptr.To("n1"), Zone: ptr.To("z"), TargetRef: &corev1.ObjectReference{Kind: "Pod", Name: "p", UID: "u"},
				Hints: &discoveryv1.EndpointHints{ForZones: []discoveryv1.ForZone{{Name: "z"}}, ForNodes: []discoveryv1.ForNode{{Name: "n1"}}}},
			{Addresses: nil}},
	}
	got, ok := ConvertEndpointSlice(s)
	if !ok {
		t.Fatal("not converted")
	}
	same(t, got, &collect.EndpointSlice{
		Service: "web", ManagedBy: "me", Family: "IPv4", Headless: true, TriggerTime: at(9).Time, Created: at(1).Time, Written: at(10).Time,
		Ports: []collect.SlicePort{{Name: "http", Protocol: "UDP", Port: 8080}, {Protocol: "TCP", Port: 1}},
		Endpoints: []collect.SliceEndpoint{
			{Address: netip.MustParseAddr("10.0.0.1"), Ready: true, Serving: true},
			{Address: netip.MustParseAddr("10.0.0.2"), Serving: true, Terminating: true, Node: "n1", Zone: "z", PodName: "p", PodUID: "u",
				HintZones: []string{"z"}, HintNodes: []string{"n1"}}},
	})
	// What took the last endpoint away moved no time.
	s.Endpoints = nil
	if got, _ := ConvertEndpointSlice(s); !got.Written.IsZero() || got.Created.IsZero() {
		t.Errorf("without endpoints it says to be written at %s", got.Written)
	}
	if _, ok := ConvertEndpointSlice(&discoveryv1.EndpointSlice{AddressType: "FQDN"}); ok {
		t.Error("a slice of names was converted")
	}
}

func TestConvertEndpoints(t *testing.T) {
	e := &corev1.Endpoints{ //nolint:staticcheck // the deprecated kind is what is observed
		ObjectMeta: metav1.ObjectMeta{CreationTimestamp: at(1), ManagedFields: writes(at(10)), Annotations: map[string]string{"endpoints.kubernetes.io/over-capacity": "truncated",
			"endpoints.kubernetes.io/last-change-trigger-time": "2026-03-01T12:00:09Z"}},
		Subsets: []corev1.EndpointSubset{ //nolint:staticcheck // see above
			{Addresses: []corev1.EndpointAddress{{IP: "10.0.0.1", TargetRef: &corev1.ObjectReference{Kind: "Pod", Name: "p", UID: "u"}}},
				NotReadyAddresses: []corev1.EndpointAddress{{IP: "10.0.0.2"}}, Ports: []corev1.EndpointPort{{Name: "http", Port: 80}}}},
	}
	ports := []collect.SlicePort{{Name: "http", Protocol: "TCP", Port: 80}}
	same(t, ConvertEndpoints(e), &collect.Endpoints{Truncated: true, TriggerTime: at(9).Time, Created: at(1).Time, Written: at(10).Time, Addresses: []collect.EndpointsAddress{
		{IP: netip.MustParseAddr("10.0.0.1"), Ready: true, PodName: "p", PodUID: "u", Ports: ports},
		{IP: netip.MustParseAddr("10.0.0.2"), Ports: ports}}})
	// What took the last address away moved no time.
	e.Subsets = nil
	same(t, ConvertEndpoints(e), &collect.Endpoints{Truncated: true, TriggerTime: at(9).Time, Created: at(1).Time})
	for _, m := range []metav1.ObjectMeta{
		{Labels: map[string]string{"endpointslice.kubernetes.io/skip-mirror": "true"}},
		{Annotations: map[string]string{"control-plane.alpha.kubernetes.io/leader": "{}"}},
	} {
		same(t, ConvertEndpoints(&corev1.Endpoints{ObjectMeta: m}), &collect.Endpoints{NotMirrored: true}) //nolint:staticcheck // see above
	}
}

func TestConvertNodeWorkloadsAndEvents(t *testing.T) {
	same(t, ConvertNode(&corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"topology.kubernetes.io/zone": "z"}, DeletionTimestamp: ptr.To(at(3))},
		Spec:       corev1.NodeSpec{Unschedulable: true},
		Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Type: "Hostname", Address: "n"}, {Type: "InternalIP", Address: "192.0.2.7"}},
			Conditions: []corev1.NodeCondition{{Type: "Ready", Status: "Unknown", LastHeartbeatTime: at(1), LastTransitionTime: at(2), Reason: "NodeStatusUnknown"}}}}),
		&collect.Node{Labels: map[string]string{"topology.kubernetes.io/zone": "z"}, Zone: "z", Addresses: addrs("192.0.2.7"),
			Ready: &collect.Condition{Since: at(2).Time, Reason: "NodeStatusUnknown"}, Heard: at(1).Time, Unschedulable: true, Deletion: at(3).Time})
	meta := metav1.ObjectMeta{Generation: 4, Annotations: map[string]string{"deployment.kubernetes.io/revision": "2"}}
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web", "x": "y"}}}
	want := &collect.Workload{Selector: map[string]string{"app": "web"}, Generation: 4, ObservedGeneration: 3, Replicas: 5, StatusReplicas: 6,
		Updated: 1, Ready: 2, Available: 7, Revision: "2", TemplateLabels: map[string]string{"app": "web", "x": "y"}, Paused: true}
	same(t, ConvertDeployment(&appsv1.Deployment{ObjectMeta: meta,
		Spec:   appsv1.DeploymentSpec{Replicas: ptr.To(int32(5)), Selector: selector, Template: template, Paused: true},
		Status: appsv1.DeploymentStatus{ObservedGeneration: 3, Replicas: 6, UpdatedReplicas: 1, ReadyReplicas: 2, AvailableReplicas: 7}}), want)
	meta.OwnerReferences = []metav1.OwnerReference{{Kind: "Deployment", Name: "web", UID: "d", Controller: ptr.To(true)}}
	want.Owner, want.Paused, want.Replicas = &collect.Owner{Kind: "Deployment", Name: "web", UID: "d"}, false, 1
	same(t, ConvertReplicaSet(&appsv1.ReplicaSet{ObjectMeta: meta,
		Spec:   appsv1.ReplicaSetSpec{Selector: selector, Template: template},
		Status: appsv1.ReplicaSetStatus{ObservedGeneration: 3, Replicas: 6, FullyLabeledReplicas: 1, ReadyReplicas: 2, AvailableReplicas: 7}}), want)

	e := &corev1.Event{InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: "d", Name: "p", UID: "u"}, Reason: "Unhealthy",
		Message: "m", Type: "Warning", Source: corev1.EventSource{Component: "kubelet"}, Count: 3, FirstTimestamp: at(1), LastTimestamp: at(2)}
	ke := &collect.KubeEvent{Regarding: collect.ObjectKey{Kind: "Pod", Namespace: "d", Name: "p"}, UID: "u", Reason: "Unhealthy", Message: "m",
		EventType: "Warning", Component: "kubelet", Count: 3, First: at(1).Time, Last: at(2).Time}
	same(t, ConvertEvent(e), ke)
	e = &corev1.Event{InvolvedObject: e.InvolvedObject, Reason: "Unhealthy", Message: "m", Type: "Warning", ReportingController: "kubelet",
		EventTime: metav1.NewMicroTime(at(1).Time), Series: &corev1.EventSeries{Count: 3, LastObservedTime: metav1.NewMicroTime(at(2).Time)}}
	same(t, ConvertEvent(e), ke)
	e.Series = nil
	ke.Count, ke.Last = 1, at(1).Time
	same(t, ConvertEvent(e), ke)
}
