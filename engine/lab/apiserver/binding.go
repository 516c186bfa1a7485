package apiserver

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
	storageerr "k8s.io/apiserver/pkg/storage/errors"
	"k8s.io/apiserver/pkg/util/dryrun"
)

// bindingREST is how a scheduler gives a pod its node: create pods/binding
// (BindingREST in pkg/registry/core/pod/storage/storage.go).
type bindingREST struct {
	pods *genericregistry.Store
}

var _ rest.NamedCreater = &bindingREST{}

// New implements rest.Storage.
func (r *bindingREST) New() runtime.Object { return &corev1.Binding{} }

// Destroy implements rest.Storage.
func (r *bindingREST) Destroy() {}

// Create implements rest.NamedCreater.
func (r *bindingREST) Create(ctx context.Context, name string, obj runtime.Object, validate rest.ValidateObjectFunc, o *metav1.CreateOptions) (runtime.Object, error) {
	b, ok := obj.(*corev1.Binding)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("not a Binding: %T", obj))
	}
	if b.Name != name {
		return nil, apierrors.NewBadRequest("name in URL does not match name in Binding object")
	}
	if b.Target.Name == "" || b.Target.Kind != "" && b.Target.Kind != "Node" {
		return nil, apierrors.NewBadRequest("target must name a Node")
	}
	if validate != nil {
		if err := validate(ctx, b.DeepCopyObject()); err != nil {
			return nil, err
		}
	}
	key, err := r.pods.KeyFunc(ctx, name)
	if err != nil {
		return nil, err
	}
	var pre *storage.Preconditions
	if b.UID != "" {
		pre = storage.NewUIDPreconditions(string(b.UID))
	}
	err = r.pods.Storage.GuaranteedUpdate(ctx, key, &corev1.Pod{}, false, pre, storage.SimpleUpdate(func(obj runtime.Object) (runtime.Object, error) {
		return bind(obj, b)
	}), dryrun.IsDryRun(o.DryRun), nil)
	if err != nil {
		resource := r.pods.DefaultQualifiedResource
		err = storageerr.InterpretUpdateError(storageerr.InterpretGetError(err, resource, name), resource, name)
		if _, ok := err.(apierrors.APIStatus); !ok {
			err = apierrors.NewConflict(resource, name, err)
		}
		return nil, err
	}
	return &metav1.Status{Status: metav1.StatusSuccess}, nil
}

func bind(obj runtime.Object, b *corev1.Binding) (runtime.Object, error) {
	p, ok := obj.(*corev1.Pod)
	if !ok {
		return nil, fmt.Errorf("cannot bind a %T", obj)
	}
	switch {
	case p.DeletionTimestamp != nil:
		return nil, fmt.Errorf("pod %s is being deleted, cannot be assigned to a host", p.Name)
	case p.Spec.NodeName != "":
		return nil, fmt.Errorf("pod %s is already assigned to node %q", p.Name, p.Spec.NodeName)
	case len(p.Spec.SchedulingGates) > 0:
		return nil, fmt.Errorf("pod %s has non-empty .spec.schedulingGates", p.Name)
	}
	p.Spec.NodeName = b.Target.Name
	p.Status.NominatedNodeName = ""
	if len(b.Annotations) > 0 && p.Annotations == nil {
		p.Annotations = map[string]string{}
	}
	maps.Copy(p.Annotations, b.Annotations)
	setPodCondition(p, corev1.PodCondition{
		Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now(),
	})
	return p, nil
}

func setPodCondition(p *corev1.Pod, c corev1.PodCondition) {
	for i := range p.Status.Conditions {
		if old := &p.Status.Conditions[i]; old.Type == c.Type {
			if old.Status == c.Status {
				c.LastTransitionTime = old.LastTransitionTime
			}
			*old = c
			return
		}
	}
	p.Status.Conditions = append(p.Status.Conditions, c)
}
