package apiserver

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
	storageerr "k8s.io/apiserver/pkg/storage/errors"
	"k8s.io/apiserver/pkg/util/dryrun"
)

func namespaces() *resource[*corev1.Namespace] {
	keepSpecFinalizers := func(n, old *corev1.Namespace) {
		n.Spec.Finalizers, n.Status = old.Spec.Finalizers, old.Status
	}
	return &resource[*corev1.Namespace]{
		version: corev1.SchemeGroupVersion, kind: "Namespace", plural: "namespaces", singular: "namespace",
		short:     []string{"ns"},
		name:      apivalidation.ValidateNamespaceName,
		newObject: func() *corev1.Namespace { return &corev1.Namespace{} },
		newList:   func() runtime.Object { return &corev1.NamespaceList{} },
		fields: map[string]func(*corev1.Namespace) string{
			"status.phase": func(n *corev1.Namespace) string { return string(n.Status.Phase) },
		},
		columns: []column[*corev1.Namespace]{
			nameColumn[*corev1.Namespace](),
			col("Status", func(n *corev1.Namespace) any { return string(n.Status.Phase) }),
			ageColumn[*corev1.Namespace](),
		},
		rules: rules[*corev1.Namespace]{
			create: func(n *corev1.Namespace) {
				n.Status = corev1.NamespaceStatus{Phase: corev1.NamespaceActive}
				n.Spec.Finalizers = []corev1.FinalizerName{corev1.FinalizerKubernetes}
				defaultNamespace(n) // generateName has made a name by now
			},
			update:       keepSpecFinalizers,
			statusUpdate: func(n, old *corev1.Namespace) { n.Spec = old.Spec },
		},
		adjust: func(s *genericregistry.Store) {
			s.ShouldDeleteDuringUpdate = func(ctx context.Context, key string, obj, existing runtime.Object) bool {
				n, ok := obj.(*corev1.Namespace)
				return ok && len(n.Spec.Finalizers) == 0 && genericregistry.ShouldDeleteDuringUpdate(ctx, key, obj, existing)
			}
		},
		main: func(s *store) rest.Storage { return &namespaceREST{store: s} },
		subresources: func(main, _ *genericregistry.Store) map[string]rest.Storage {
			finalize := new(*main)
			finalize.UpdateStrategy = finalizeStrategy{main.UpdateStrategy}
			return map[string]rest.Storage{"finalize": &subresource{store: finalize}}
		},
	}
}

// finalizeStrategy lets namespaces/finalize change the finalizers and nothing
// else.
type finalizeStrategy struct{ rest.RESTUpdateStrategy }

// PrepareForUpdate implements rest.RESTUpdateStrategy.
func (finalizeStrategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	obj.(*corev1.Namespace).Status = old.(*corev1.Namespace).Status
}

// namespaceREST deletes in two steps: a first delete marks the namespace as
// terminating, and it goes when its finalizers have
// (pkg/registry/core/namespace/storage/storage.go).
type namespaceREST struct{ *store }

// Delete implements rest.GracefulDeleter.
func (r *namespaceREST) Delete(ctx context.Context, name string, validate rest.ValidateObjectFunc, o *metav1.DeleteOptions) (runtime.Object, bool, error) {
	obj, err := r.Get(ctx, name, &metav1.GetOptions{})
	if err != nil {
		return nil, false, err
	}
	ns, ok := obj.(*corev1.Namespace)
	if !ok {
		return nil, false, apierrors.NewInternalError(fmt.Errorf("expected a Namespace, got a %T", obj))
	}
	if o == nil {
		o = metav1.NewDeleteOptions(0)
	}
	if o.Preconditions == nil {
		o.Preconditions = &metav1.Preconditions{}
	}
	if o.Preconditions.UID == nil {
		o.Preconditions.UID = &ns.UID
	}
	switch {
	case ns.DeletionTimestamp.IsZero():
		return r.terminate(ctx, name, validate, o)
	case len(ns.Spec.Finalizers) > 0:
		return ns, false, nil
	default:
		return r.store.Delete(ctx, name, validate, o)
	}
}

func (r *namespaceREST) terminate(ctx context.Context, name string, validate rest.ValidateObjectFunc, o *metav1.DeleteOptions) (runtime.Object, bool, error) {
	key, err := r.KeyFunc(ctx, name)
	if err != nil {
		return nil, false, err
	}
	out := &corev1.Namespace{}
	pre := &storage.Preconditions{UID: o.Preconditions.UID, ResourceVersion: o.Preconditions.ResourceVersion}
	err = r.Storage.GuaranteedUpdate(ctx, key, out, false, pre, storage.SimpleUpdate(func(obj runtime.Object) (runtime.Object, error) {
		ns, ok := obj.(*corev1.Namespace)
		if !ok {
			return nil, fmt.Errorf("expected a Namespace, got a %T", obj)
		}
		if err := validate(ctx, ns); err != nil {
			return nil, err
		}
		if ns.DeletionTimestamp.IsZero() {
			ns.DeletionTimestamp = new(metav1.Now())
		}
		ns.Status.Phase = corev1.NamespaceTerminating
		return ns, nil
	}), dryrun.IsDryRun(o.DryRun), nil)
	if err != nil {
		resource := r.DefaultQualifiedResource
		err = storageerr.InterpretUpdateError(storageerr.InterpretGetError(err, resource, name), resource, name)
		if _, ok := err.(apierrors.APIStatus); !ok {
			err = apierrors.NewInternalError(err)
		}
		return nil, false, err
	}
	return out, false, nil
}
