package kube

import (
	"encoding/json"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/kconverge/kconverge/collect"
)

// marked puts the way that leads there into every string of an object.
func marked(v reflect.Value, path string) {
	switch v.Kind() {
	case reflect.String:
		if v.CanSet() {
			v.SetString("<<" + path + ">>")
		}
	case reflect.Bool:
		if v.CanSet() {
			v.SetBool(true)
		}
	case reflect.Pointer:
		if v.CanSet() {
			v.Set(reflect.New(v.Type().Elem()))
			marked(v.Elem(), path)
		}
	case reflect.Slice:
		if !v.CanSet() {
			return
		}
		if v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetBytes([]byte("<<" + path + ">>"))
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		marked(v.Index(0), path)
	case reflect.Map:
		if v.CanSet() && v.Type().Key().Kind() == reflect.String {
			v.Set(reflect.MakeMap(v.Type()))
			x := reflect.New(v.Type().Elem()).Elem()
			marked(x, path)
			v.SetMapIndex(reflect.ValueOf("<<"+path+">>").Convert(v.Type().Key()), x)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Type().Field(i)
			to := strings.TrimPrefix(path+"."+f.Name, ".")
			if f.Anonymous {
				to = path
			}
			marked(v.Field(i), to)
		}
	}
}

// ofWorkload is kept of each kind of workload.
const ofWorkload = "OwnerReferences.Kind OwnerReferences.Name OwnerReferences.UID Spec.Selector.MatchLabels Spec.Template.Labels"

var way = regexp.MustCompile(`<<([^>]*)>>`)

// TestOnlyThisOfAnObjectIsKept: of every field of every object these alone can get into
// an event. So no recording holds the content of a Secret, which is never asked for,
// nor environments, commands, images, volumes or annotations.
func TestOnlyThisOfAnObjectIsKept(t *testing.T) {
	for _, c := range []struct {
		object  any
		convert func(o any) collect.Payload
		kept    string
	}{
		{&corev1.Pod{}, func(o any) collect.Payload { return ConvertPod(o.(*corev1.Pod)) },
			`Labels OwnerReferences.Kind OwnerReferences.Name OwnerReferences.UID Spec.Containers.Ports.Name Spec.Containers.Ports.Protocol
			Spec.NodeName Status.Conditions.Reason Status.InitContainerStatuses.State.Waiting.Reason Status.Phase`},
		{&corev1.Service{}, func(o any) collect.Payload { return ConvertService(o.(*corev1.Service)) },
			`Labels Spec.ExternalTrafficPolicy Spec.InternalTrafficPolicy Spec.IPFamilies Spec.Ports.Name Spec.Ports.Protocol Spec.Ports.TargetPort.StrVal
			Spec.Selector Spec.SessionAffinity Spec.TrafficDistribution Spec.Type`},
		{&discoveryv1.EndpointSlice{}, func(o any) collect.Payload { p, _ := ConvertEndpointSlice(o.(*discoveryv1.EndpointSlice)); return p },
			`Endpoints.Hints.ForNodes.Name Endpoints.Hints.ForZones.Name Endpoints.NodeName Endpoints.TargetRef.Name Endpoints.TargetRef.UID Endpoints.Zone Ports.Name Ports.Protocol`},
		{&corev1.Endpoints{}, func(o any) collect.Payload { return ConvertEndpoints(o.(*corev1.Endpoints)) }, `Subsets.Addresses.TargetRef.Name Subsets.Addresses.TargetRef.UID Subsets.Ports.Name Subsets.Ports.Protocol`}, //nolint:staticcheck // what is observed
		{&corev1.Node{}, func(o any) collect.Payload { return ConvertNode(o.(*corev1.Node)) }, `Labels`},
		{&corev1.Event{}, func(o any) collect.Payload { return ConvertEvent(o.(*corev1.Event)) },
			`InvolvedObject.Kind InvolvedObject.Name InvolvedObject.Namespace InvolvedObject.UID Message Reason Source.Component Type`},
		{&appsv1.Deployment{}, func(o any) collect.Payload { return ConvertDeployment(o.(*appsv1.Deployment)) }, ofWorkload},
		{&appsv1.ReplicaSet{}, func(o any) collect.Payload { return ConvertReplicaSet(o.(*appsv1.ReplicaSet)) }, ofWorkload},
		{&appsv1.StatefulSet{}, func(o any) collect.Payload { return ConvertStatefulSet(o.(*appsv1.StatefulSet)) }, ofWorkload + " Status.UpdateRevision"},
		{&appsv1.DaemonSet{}, func(o any) collect.Payload { return ConvertDaemonSet(o.(*appsv1.DaemonSet)) }, ofWorkload},
	} {
		marked(reflect.ValueOf(c.object).Elem(), "")
		all, _ := json.Marshal(c.object) // of what can be written
		if p, ok := c.object.(*corev1.Pod); ok && (p.Spec.Containers[0].Env[0].Value == "" || p.Spec.Containers[0].Command[0] == "" || len(p.Annotations) == 0) {
			t.Fatalf("nothing was put into %s", all)
		}
		if p, ok := c.object.(*corev1.Pod); ok {
			condition := p.Status.Conditions[0]
			for _, kind := range []corev1.PodConditionType{corev1.PodScheduled, corev1.PodReady, corev1.DisruptionTarget} {
				condition.Type = kind
				p.Status.Conditions = append(p.Status.Conditions, condition)
			}
		}
		if s, ok := c.object.(*discoveryv1.EndpointSlice); ok {
			s.AddressType = discoveryv1.AddressTypeIPv4
			s.Endpoints[0].Addresses, s.Endpoints[0].TargetRef.Kind = []string{"10.0.0.1"}, "Pod"
		}
		if e, ok := c.object.(*corev1.Endpoints); ok { //nolint:staticcheck // what is observed
			e.Subsets[0].Addresses[0].IP, e.Subsets[0].NotReadyAddresses[0].IP = "10.0.0.1", "10.0.0.2"
			e.Subsets[0].Addresses[0].TargetRef.Kind = "Pod"
		}
		b, err := json.Marshal(c.convert(c.object))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		text := strings.NewReplacer(`\u003c`, "<", `\u003e`, ">").Replace(string(b))
		for _, m := range way.FindAllStringSubmatch(text, -1) {
			got = append(got, m[1])
		}
		slices.Sort(got)
		got = slices.Compact(got)
		want := strings.Fields(c.kept)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%T: kept are\n%s\nwant\n%s", c.object, strings.Join(got, " "), strings.Join(want, " "))
		}
	}
}
