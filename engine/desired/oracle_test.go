package desired_test

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/fake"
	corelisters "k8s.io/client-go/listers/core/v1"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/endpointslice"
	endpointsliceutil "k8s.io/endpointslice/util"
	"k8s.io/klog/v2"
	"pgregory.net/rapid"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/engine/desired"
)

// published reconciles the Service with the real reconciler, from nothing, and
// says what its slices then publish.
func published(t *rapid.T, svc *corev1.Service, pods []*corev1.Pod) []string {
	nodes := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	for _, n := range []string{"n1", "n2"} {
		if err := nodes.Add(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n}}); err != nil {
			t.Fatal(err)
		}
	}
	client := fake.NewClientset()
	made := 0
	client.PrependReactor("create", "endpointslices", func(a clienttesting.Action) (bool, runtime.Object, error) {
		// The fake does not make names.
		made++
		a.(clienttesting.CreateAction).GetObject().(*discovery.EndpointSlice).Name = fmt.Sprint("web-", made)
		return false, nil, nil
	})
	r := endpointslice.NewReconciler(client, corelisters.NewNodeLister(nodes), 100, endpointsliceutil.NewEndpointSliceTracker(), nil,
		record.NewFakeRecorder(100), "endpointslice-controller.k8s.io")
	var selected []*corev1.Pod
	for _, p := range pods {
		if p.Labels["app"] == svc.Spec.Selector["app"] {
			selected = append(selected, p)
		}
	}
	// Pods whose node is missing are an error as well as left out.
	if err := r.Reconcile(klog.Logger{}, svc, selected, nil, time.Time{}); err != nil && !strings.Contains(err.Error(), "Not Found") {
		t.Fatal(err)
	}
	list, err := client.DiscoveryV1().EndpointSlices(svc.Namespace).List(context.Background(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, s := range list.Items {
		var ports []string
		for _, p := range s.Ports {
			ports = append(ports, fmt.Sprintf("%s/%s/%d", *p.Name, *p.Protocol, *p.Port))
		}
		slices.Sort(ports)
		for _, e := range s.Endpoints {
			out = append(out, line(e.Addresses[0], string(e.TargetRef.UID), *e.Conditions.Ready, *e.Conditions.Serving, *e.Conditions.Terminating, ports))
		}
	}
	slices.Sort(out)
	return out
}

func line(ip, uid string, ready, serving, terminating bool, ports []string) string {
	return fmt.Sprintf("%s %s ready=%v serving=%v terminating=%v %s", ip, uid, ready, serving, terminating, strings.Join(ports, ","))
}

// TestSlicesAgreeWithTheRealReconciler compares with k8s.io/endpointslice itself
// over random Services and pods.
func TestSlicesAgreeWithTheRealReconciler(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		flip := func(label string) bool { return rapid.Bool().Draw(t, label) }
		svc := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "s"}}
		ours := &collect.Service{Kind: "ClusterIP", Selector: map[string]string{"app": "web"}}
		svc.Spec.Selector = ours.Selector
		svc.Spec.ClusterIP, svc.Spec.ClusterIPs = "10.96.0.1", []string{"10.96.0.1"}
		ours.ClusterIPs = []netip.Addr{netip.MustParseAddr("10.96.0.1")}
		if flip("headless") {
			svc.Spec.ClusterIP, svc.Spec.ClusterIPs, ours.ClusterIPs, ours.Headless = "None", []string{"None"}, nil, true
		}
		for _, f := range rapid.SampledFrom([][]collect.Family{nil, {collect.IPv4}, {collect.IPv6}, {collect.IPv4, collect.IPv6}}).Draw(t, "families") {
			svc.Spec.IPFamilies = append(svc.Spec.IPFamilies, corev1.IPFamily(f))
			ours.Families = append(ours.Families, f)
		}
		if flip("publishNotReadyAddresses") {
			svc.Spec.PublishNotReadyAddresses, ours.PublishNotReadyAddresses = true, true
		}
		for i := range rapid.IntRange(0, 2).Draw(t, "ports") {
			p := corev1.ServicePort{Name: fmt.Sprintf("p%d", i), Port: int32(80 + i), Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromInt32(8080)}
			o := collect.ServicePort{Name: p.Name, Port: p.Port, Protocol: collect.TCP, Target: 8080}
			if flip("named target") {
				p.TargetPort, o.Target, o.TargetName = intstr.FromString("http"), 0, "http"
			}
			svc.Spec.Ports, ours.Ports = append(svc.Spec.Ports, p), append(ours.Ports, o)
		}
		if len(ours.Ports) == 0 && !ours.Headless {
			return // not valid
		}
		var pods []*corev1.Pod
		var refs []desired.PodRef
		for i := range rapid.IntRange(0, 5).Draw(t, "pods") {
			name := fmt.Sprintf("pod%d", i)
			p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("u-" + name)}}
			o := &collect.Pod{}
			p.Labels = map[string]string{"app": rapid.SampledFrom([]string{"web", "web", "other"}).Draw(t, "label")}
			o.Labels = p.Labels
			p.Spec.NodeName = rapid.SampledFrom([]string{"n1", "n2", "gone"}).Draw(t, "node")
			o.Node = p.Spec.NodeName
			for _, ip := range rapid.SampledFrom([][]string{nil, {"10.0.0.1"}, {"10.0.0.2", "fd00::2"}, {"fd00::3", "10.0.0.3"}, {"fd00::4"}}).Draw(t, "addresses") {
				p.Status.PodIPs = append(p.Status.PodIPs, corev1.PodIP{IP: ip})
				o.IPs = append(o.IPs, netip.MustParseAddr(ip))
			}
			if len(p.Status.PodIPs) > 0 {
				p.Status.PodIP = p.Status.PodIPs[0].IP
			}
			p.Status.Phase = rapid.SampledFrom([]corev1.PodPhase{corev1.PodRunning, corev1.PodRunning, corev1.PodPending, corev1.PodSucceeded, corev1.PodFailed}).Draw(t, "phase")
			o.Phase = string(p.Status.Phase)
			if flip("ready") {
				p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
				o.Ready = &collect.Condition{Status: true}
			}
			if flip("terminating") {
				now := metav1.Now()
				p.DeletionTimestamp, o.Deletion = &now, now.Time
			}
			if flip("container port") {
				n := rapid.SampledFrom([]int32{8080, 9090}).Draw(t, "number")
				proto := rapid.SampledFrom([]corev1.Protocol{corev1.ProtocolTCP, corev1.ProtocolTCP, corev1.ProtocolUDP}).Draw(t, "protocol")
				p.Spec.Containers = []corev1.Container{{Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: n, Protocol: proto}}}}
				o.Ports = []collect.NamedPort{{Name: "http", Port: n, Protocol: collect.Protocol(proto)}}
			}
			pods = append(pods, p)
			refs = append(refs, desired.PodRef{Name: name, UID: string(p.UID), Pod: o, NodeGone: o.Node == "gone"})
		}
		var got []string
		for _, e := range desired.Slices(ours, refs) {
			var ports []string
			for _, p := range e.Ports {
				ports = append(ports, fmt.Sprintf("%s/%s/%d", p.Name, p.Protocol, p.Port))
			}
			got = append(got, line(e.Address.String(), e.PodUID, e.Ready, e.Serving, e.Terminating, ports))
		}
		slices.Sort(got)
		if want := published(t, svc, pods); !slices.Equal(got, want) {
			t.Fatalf("\n got %s\nwant %s", strings.Join(got, "\n     "), strings.Join(want, "\n     "))
		}
	})
}
