package lab

import (
	"context"
	"fmt"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"

	"github.com/kconverge/kconverge/collect"
)

// restartedAt is the annotation that kubectl rollout restart sets.
const restartedAt = "kubectl.kubernetes.io/restartedAt"

// What is done to a workload shows on the axis by the workload's own change,
// whoever made it; only a pod's deletion has to be told.

// scaler is a resource with replicas.
type scaler interface {
	GetScale(ctx context.Context, name string, o metav1.GetOptions) (*autoscalingv1.Scale, error)
	UpdateScale(ctx context.Context, name string, scale *autoscalingv1.Scale, o metav1.UpdateOptions) (*autoscalingv1.Scale, error)
}

// Scale sets the replicas of a Deployment, StatefulSet or ReplicaSet, as kubectl
// scale does.
func (l *Lab) Scale(ctx context.Context, namespace, kind, name string, replicas int32) error {
	if err := l.WaitReady(ctx); err != nil {
		return err
	}
	var of scaler
	switch kind {
	case "Deployment":
		of = l.client.AppsV1().Deployments(namespace)
	case "StatefulSet":
		of = l.client.AppsV1().StatefulSets(namespace)
	case "ReplicaSet":
		of = l.client.AppsV1().ReplicaSets(namespace)
	default:
		return fmt.Errorf("scale %s: a %s has no replicas to set", name, kind)
	}
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		scale, err := of.GetScale(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		_, err = of.UpdateScale(ctx, name, &autoscalingv1.Scale{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, ResourceVersion: scale.ResourceVersion},
			Spec:       autoscalingv1.ScaleSpec{Replicas: replicas},
		}, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("scale %s to %d: %w", name, replicas, err)
	}
	return nil
}

// restartable are the resources of the kinds that replace their pods when their
// template changes.
var restartable = map[string]string{"Deployment": "deployments", "StatefulSet": "statefulsets", "DaemonSet": "daemonsets"}

// Restart rolls the pods of a Deployment, StatefulSet or DaemonSet, as kubectl
// rollout restart does.
func (l *Lab) Restart(ctx context.Context, namespace, kind, name string) error {
	if err := l.WaitReady(ctx); err != nil {
		return err
	}
	patch := fmt.Appendf(nil, `{"spec":{"template":{"metadata":{"annotations":{%q:%q}}}}}`, restartedAt, l.o.Clock.Now().Format(time.RFC3339Nano))
	resource, ok := restartable[kind]
	if !ok {
		return fmt.Errorf("restart %s: a %s does not replace its pods", name, kind)
	}
	err := l.client.AppsV1().RESTClient().Patch(types.StrategicMergePatchType).Namespace(namespace).Resource(resource).Name(name).Body(patch).Do(ctx).Error()
	if err != nil {
		return fmt.Errorf("restart %s: %w", name, err)
	}
	return nil
}

// DeletePod deletes a pod with its own grace period.
func (l *Lab) DeletePod(ctx context.Context, namespace, pod string) error {
	if err := l.WaitReady(ctx); err != nil {
		return err
	}
	asked := l.o.Clock.Now()
	if err := l.client.CoreV1().Pods(namespace).Delete(ctx, pod, metav1.DeleteOptions{}); err != nil {
		return fmt.Errorf("delete pod %s: %w", pod, err)
	}
	l.sink.Emit(collect.Event{At: asked, Source: collect.SourceUser, Payload: &collect.Action{Namespace: namespace, Text: "delete pod " + pod, By: "screen"}})
	return nil
}
