package apiserver

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/validation/field"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// scaled is the part of a workload that the scale subresource shows.
type scaled struct {
	meta     *metav1.ObjectMeta
	replicas **int32
	have     int32
	selector *metav1.LabelSelector
}

// scaleREST serves a workload's replicas as autoscaling/v1 Scale
// (pkg/registry/apps/deployment/storage/storage.go).
type scaleREST[T object] struct {
	store *genericregistry.Store
	of    func(T) scaled
}

func newScaleREST[T object](s *genericregistry.Store, of func(T) scaled) rest.Storage {
	return &scaleREST[T]{store: s, of: of}
}

// New implements rest.Storage.
func (r *scaleREST[T]) New() runtime.Object { return &autoscalingv1.Scale{} }

// Destroy implements rest.Storage.
func (r *scaleREST[T]) Destroy() {}

// GroupVersionKind implements rest.GroupVersionKindProvider: discovery must
// not list the scale under apps.
func (r *scaleREST[T]) GroupVersionKind(schema.GroupVersion) schema.GroupVersionKind {
	return autoscalingv1.SchemeGroupVersion.WithKind("Scale")
}

// Get implements rest.Getter.
func (r *scaleREST[T]) Get(ctx context.Context, name string, o *metav1.GetOptions) (runtime.Object, error) {
	obj, err := r.store.Get(ctx, name, o)
	if err != nil {
		return nil, err
	}
	return r.scale(obj)
}

// Update implements rest.Updater.
func (r *scaleREST[T]) Update(ctx context.Context, name string, in rest.UpdatedObjectInfo, _ rest.ValidateObjectFunc, _ rest.ValidateObjectUpdateFunc, _ bool, o *metav1.UpdateOptions) (runtime.Object, bool, error) {
	obj, _, err := r.store.Update(ctx, name, &scaleUpdate[T]{r, in},
		rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, o)
	if err != nil {
		return nil, false, err
	}
	s, err := r.scale(obj)
	return s, false, err
}

// ConvertToTable implements rest.TableConvertor.
func (r *scaleREST[T]) ConvertToTable(ctx context.Context, obj, o runtime.Object) (*metav1.Table, error) {
	return table[*autoscalingv1.Scale]{clock: clock.RealClock{}, columns: []column[*autoscalingv1.Scale]{
		nameColumn[*autoscalingv1.Scale](),
		col("Desired", func(s *autoscalingv1.Scale) any { return int64(s.Spec.Replicas) }),
		col("Available", func(s *autoscalingv1.Scale) any { return int64(s.Status.Replicas) }),
		ageColumn[*autoscalingv1.Scale](),
	}}.ConvertToTable(ctx, obj, o)
}

func (r *scaleREST[T]) scale(obj runtime.Object) (*autoscalingv1.Scale, error) {
	o, ok := obj.(T)
	if !ok {
		return nil, fmt.Errorf("a %T has no scale", obj)
	}
	s := r.of(o)
	m := s.meta
	managed, err := scaleFields(m).ToSubresource()
	if err != nil {
		return nil, fmt.Errorf("reading the managed fields of %s: %w", m.Name, err)
	}
	return &autoscalingv1.Scale{
		ObjectMeta: metav1.ObjectMeta{
			Name: m.Name, Namespace: m.Namespace, UID: m.UID, ResourceVersion: m.ResourceVersion,
			CreationTimestamp: m.CreationTimestamp, ManagedFields: managed,
		},
		Spec:   autoscalingv1.ScaleSpec{Replicas: value(*s.replicas)},
		Status: autoscalingv1.ScaleStatus{Replicas: s.have, Selector: metav1.FormatLabelSelector(s.selector)},
	}, nil
}

// scaleFields maps who owns spec.replicas between the workload and its scale;
// without it a later server-side apply would not see that somebody scaled.
func scaleFields(m *metav1.ObjectMeta) *managedfields.ScaleHandler {
	return managedfields.NewScaleHandler(m.ManagedFields, appsv1.SchemeGroupVersion, managedfields.ResourcePathMappings{
		appsv1.SchemeGroupVersion.String(): fieldpath.MakePathOrDie("spec", "replicas"),
	})
}

// scaleUpdate turns an update of a scale into one of its workload.
type scaleUpdate[T object] struct {
	rest *scaleREST[T]
	in   rest.UpdatedObjectInfo
}

// Preconditions implements rest.UpdatedObjectInfo.
func (u *scaleUpdate[T]) Preconditions() *metav1.Preconditions { return u.in.Preconditions() }

// UpdatedObject implements rest.UpdatedObjectInfo.
func (u *scaleUpdate[T]) UpdatedObject(ctx context.Context, old runtime.Object) (runtime.Object, error) {
	was, err := u.rest.scale(old)
	if err != nil {
		return nil, err
	}
	obj, err := u.in.UpdatedObject(ctx, was)
	if err != nil {
		return nil, err
	}
	scale, ok := obj.(*autoscalingv1.Scale)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("expected a Scale, got a %T", obj))
	}
	if scale.Spec.Replicas < 0 {
		return nil, apierrors.NewInvalid(autoscalingv1.SchemeGroupVersion.WithKind("Scale").GroupKind(), scale.Name, field.ErrorList{
			field.Invalid(field.NewPath("spec", "replicas"), scale.Spec.Replicas, "must be greater than or equal to 0"),
		})
	}
	o, ok := old.DeepCopyObject().(T)
	if !ok {
		return nil, fmt.Errorf("a %T has no scale", old)
	}
	s := u.rest.of(o)
	managed, err := scaleFields(s.meta).ToParent(scale.ManagedFields)
	if err != nil {
		return nil, fmt.Errorf("writing the managed fields of %s: %w", s.meta.Name, err)
	}
	s.meta.ManagedFields = managed
	s.meta.ResourceVersion = scale.ResourceVersion
	if scale.UID != "" {
		s.meta.UID = scale.UID
	}
	*s.replicas = &scale.Spec.Replicas
	return o, nil
}
