package scenario

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// Controller is a custom controller that a scenario runs: it sets the condition of a
// readiness gate while a pod has an annotation, some time after it saw it.
type Controller struct {
	Annotation string   `yaml:"annotation"`
	Gate       string   `yaml:"gate"`
	Delay      Duration `yaml:"delay"`
}

func (c *Controller) validate() error {
	if c.Annotation == "" || c.Gate == "" {
		return errors.New("controller: give annotation and gate")
	}
	return nil
}

// control runs the controller until ctx ends. A watch that ends is opened again.
func (c *client) control(ctx context.Context, d *Controller) error {
	pods, err := c.resource("pods", metav1.NamespaceDefault)
	if err != nil {
		return err
	}
	for ctx.Err() == nil {
		w, err := pods.Watch(ctx, metav1.ListOptions{}) // it begins with what is there
		if err != nil {
			if !pause(ctx, time.Second) {
				return nil
			}
			continue
		}
		for e := range w.ResultChan() {
			u, ok := e.Object.(*unstructured.Unstructured)
			if !ok || e.Type != watch.Added && e.Type != watch.Modified {
				continue
			}
			_, want := u.GetAnnotations()[d.Annotation]
			if u.GetDeletionTimestamp() != nil || want == gateOpen(u, d.Gate) {
				continue
			}
			if !pause(ctx, time.Duration(d.Delay)) {
				break
			}
			status := map[bool]corev1.ConditionStatus{true: corev1.ConditionTrue, false: corev1.ConditionFalse}[want]
			body, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": []any{map[string]any{"type": d.Gate, "status": status}}}})
			if err == nil {
				// A pod that is gone, or was written meanwhile, comes again or no more.
				_, _ = pods.Patch(ctx, u.GetName(), types.StrategicMergePatchType, body, metav1.PatchOptions{}, "status")
			}
		}
		w.Stop()
	}
	return nil
}

// pause waits, and reports whether ctx still goes on.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// gateOpen tells whether a pod has the condition.
func gateOpen(u *unstructured.Unstructured, gate string) bool {
	list, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, x := range list {
		if m, ok := x.(map[string]any); ok && m["type"] == gate {
			return m["status"] == string(corev1.ConditionTrue)
		}
	}
	return false
}
