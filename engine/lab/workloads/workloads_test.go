package workloads

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

// A goroutine that is left when the bubble ends makes synctest fail.
func TestRunEndsWithItsContextAndLeavesNoGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		c := New(Options{Client: fake.NewClientset()})
		done := make(chan error, 1)
		go func() { done <- c.Run(ctx) }()
		<-time.After(time.Minute)
		synctest.Wait()
		select {
		case err := <-done:
			t.Fatalf("it ended early: %v", err)
		default:
		}
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run returned %v", err)
		}
		if err := c.Run(t.Context()); err == nil {
			t.Error("a second Run is not refused")
		}
	})
}

// Between two events nothing is asked and nothing is written, however long.
func TestAnIdleClusterCausesNoRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		client := fake.NewClientset()
		done := make(chan error, 1)
		go func() { done <- New(Options{Client: client}).Run(ctx) }()
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "waits", Namespace: "default", UID: "waits"}}
		if err := client.Tracker().Add(p); err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Minute)
		client.ClearActions()
		<-time.After(time.Hour)
		synctest.Wait()
		if got := client.Actions(); len(got) != 0 {
			t.Errorf("%d requests in an idle hour, the first: %v", len(got), got[0])
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
