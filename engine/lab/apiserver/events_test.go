package apiserver_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestEventsAreTheSameInBothGroups(t *testing.T) {
	_, client := startClient(t)
	at := metav1.NewMicroTime(time.Date(2026, 11, 29, 12, 0, 0, 123456000, time.UTC))
	must(client.EventsV1().Events("default").Create(t.Context(), &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{Name: "new", Namespace: "default"},
		EventTime:  at, ReportingController: "kubelet", ReportingInstance: "node-1", Action: "Killing", Reason: "Killing", Type: "Normal", Note: "Stopping",
		Regarding: corev1.ObjectReference{Kind: "Pod", Namespace: "default", Name: "p"},
		Series:    &eventsv1.EventSeries{Count: 3, LastObservedTime: at},
	}, metav1.CreateOptions{}))(t)
	must(client.CoreV1().Events("default").Create(t.Context(), &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Name: "old", Namespace: "default"},
		InvolvedObject: corev1.ObjectReference{Kind: "Deployment", Namespace: "default", Name: "web"}, Reason: "Scaled", Type: "Normal",
	}, metav1.CreateOptions{}))(t)

	old := must(client.CoreV1().Events("default").List(t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.name=p"}))(t)
	if len(old.Items) != 1 {
		t.Fatalf("%d core events about p, want 1", len(old.Items))
	}
	if e := old.Items[0]; e.Message != "Stopping" || e.ReportingController != "kubelet" || !e.EventTime.Equal(&at) || e.Series == nil || e.Series.Count != 3 {
		t.Errorf("core event %+v", e)
	}
	both := must(client.EventsV1().Events("").List(t.Context(), metav1.ListOptions{}))(t)
	if len(both.Items) != 2 {
		t.Errorf("%d events in events.k8s.io, want 2", len(both.Items))
	}
	web := must(client.EventsV1().Events("default").List(t.Context(), metav1.ListOptions{FieldSelector: "regarding.kind=Deployment"}))(t)
	if len(web.Items) != 1 || web.Items[0].Regarding.Name != "web" {
		t.Errorf("events about Deployments: %+v", web.Items)
	}
}
