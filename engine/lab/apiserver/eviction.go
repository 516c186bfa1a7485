package apiserver

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/util/dryrun"
)

// evictionREST is what `kubectl drain` calls: create pods/eviction. The lab has
// no disruption budgets, so an eviction is a delete that says why
// (pkg/registry/core/pod/storage/eviction.go).
type evictionREST struct {
	pods, status *genericregistry.Store
}

var _ rest.NamedCreater = &evictionREST{}
var _ rest.GroupVersionKindProvider = &evictionREST{}

// GroupVersionKind implements rest.GroupVersionKindProvider.
func (r *evictionREST) GroupVersionKind(schema.GroupVersion) schema.GroupVersionKind {
	return policyv1.SchemeGroupVersion.WithKind("Eviction")
}

// New implements rest.Storage.
func (r *evictionREST) New() runtime.Object { return &policyv1.Eviction{} }

// Destroy implements rest.Storage.
func (r *evictionREST) Destroy() {}

// Create implements rest.NamedCreater.
func (r *evictionREST) Create(ctx context.Context, name string, obj runtime.Object, validate rest.ValidateObjectFunc, o *metav1.CreateOptions) (runtime.Object, error) {
	e, ok := obj.(*policyv1.Eviction)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("not an Eviction: %T", obj))
	}
	if e.Name != name {
		return nil, apierrors.NewBadRequest("name in URL does not match name in Eviction object")
	}
	if validate != nil {
		if err := validate(ctx, e.DeepCopyObject()); err != nil {
			return nil, err
		}
	}
	del := &metav1.DeleteOptions{}
	if e.DeleteOptions != nil {
		del = e.DeleteOptions.DeepCopy()
	}
	del.DryRun = append(del.DryRun, o.DryRun...)
	if !dryrun.IsDryRun(del.DryRun) {
		if err := r.markDisrupted(ctx, name); err != nil {
			return nil, err
		}
	}
	if _, _, err := r.pods.Delete(withAsked(ctx, del), name, rest.ValidateAllObjectFunc, del); err != nil {
		return nil, err
	}
	return &metav1.Status{Status: metav1.StatusSuccess, Code: 201}, nil
}

func (r *evictionREST) markDisrupted(ctx context.Context, name string) error {
	mark := func(_ context.Context, _, old runtime.Object) (runtime.Object, error) {
		p, ok := old.(*corev1.Pod)
		if !ok {
			return nil, fmt.Errorf("cannot evict a %T", old)
		}
		p = p.DeepCopy()
		setPodCondition(p, corev1.PodCondition{
			Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "EvictionByEvictionAPI",
			Message: "Eviction API: evicting", LastTransitionTime: metav1.Now(),
		})
		return p, nil
	}
	_, _, err := r.status.Update(ctx, name, rest.DefaultUpdatedObjectInfo(nil, mark),
		rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{})
	return err
}
