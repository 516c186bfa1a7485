package workloads_test

import (
	"context"
	"sync/atomic"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	typed "k8s.io/client-go/kubernetes/typed/apps/v1"

	"github.com/kconverge/kconverge/engine/lab/workloads"
)

// A controller whose cache is behind gets a conflict when it writes the status
// of a Deployment whose new ReplicaSet it has just made.
func TestARolloutWhoseFirstStatusMeetsAConflictStillTimesOut(t *testing.T) {
	var refused atomic.Bool
	c := newCluster(t, 1, func(o *workloads.Options) {
		o.Client = statusRefused{o.Client, func(d *appsv1.Deployment) bool {
			return reason(d, appsv1.DeploymentProgressing) == "NewReplicaSetCreated" && d.Generation == 2 && refused.CompareAndSwap(false, true)
		}}
	})
	deadline := int32(1)
	c.deploy(deployment("web", 2, func(d *appsv1.Deployment) {
		d.Spec.ProgressDeadlineSeconds = &deadline
		d.Spec.Strategy.Type = appsv1.RecreateDeploymentStrategyType
	}))
	c.until("it is done", func() (bool, error) {
		return reason(c.get("web"), appsv1.DeploymentProgressing) == "NewReplicaSetAvailable", nil
	})
	c.change("web", func(d *appsv1.Deployment) { d.Spec.Template.Spec.NodeSelector = map[string]string{"no": "where"} })
	c.until("it is stuck", func() (bool, error) {
		return reason(c.get("web"), appsv1.DeploymentProgressing) == "ProgressDeadlineExceeded", nil
	})
	if !refused.Load() {
		t.Error("no status was refused: this shows nothing")
	}
}

// statusRefused answers a conflict instead of writing a Deployment's status, as
// often as refuse says so.
type statusRefused struct {
	kubernetes.Interface
	refuse func(*appsv1.Deployment) bool
}

func (c statusRefused) AppsV1() typed.AppsV1Interface { return appsRefused{c.Interface.AppsV1(), c} }

type appsRefused struct {
	typed.AppsV1Interface
	statusRefused
}

func (a appsRefused) Deployments(namespace string) typed.DeploymentInterface {
	return deploymentsRefused{a.AppsV1Interface.Deployments(namespace), a.statusRefused}
}

type deploymentsRefused struct {
	typed.DeploymentInterface
	statusRefused
}

func (d deploymentsRefused) UpdateStatus(ctx context.Context, dep *appsv1.Deployment, o metav1.UpdateOptions) (*appsv1.Deployment, error) {
	if d.refuse(dep) {
		return nil, apierrors.NewConflict(appsv1.Resource("deployments"), dep.Name, nil)
	}
	return d.DeploymentInterface.UpdateStatus(ctx, dep, o)
}
