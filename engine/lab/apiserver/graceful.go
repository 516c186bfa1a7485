package apiserver

import (
	"context"

	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
)

// gracefulStrategy lets an object stay for a while after a delete.
type gracefulStrategy[T object] struct{ strategy[T] }

var _ rest.RESTGracefulDeleteStrategy = gracefulStrategy[object]{}

// CheckGracefulDelete implements rest.RESTGracefulDeleteStrategy.
//
// The generic store calls it several times for one request, and the first
// times with an object from the watch cache that may be some writes behind. It
// hands over the answer in o, so an answer for the stale object would be taken
// for the client's wish the next time: a pod deleted right after it was bound
// would go without its grace period, as it can in kube-apiserver. So each
// answer starts from what the client really asked.
func (s gracefulStrategy[T]) CheckGracefulDelete(ctx context.Context, obj runtime.Object, o *metav1.DeleteOptions) bool {
	if o == nil {
		return false
	}
	asked := o.GracePeriodSeconds
	if a, ok := ctx.Value(askedKey{}).(askedGrace); ok {
		asked = a.seconds
	}
	seconds := s.resource.rules.gracePeriod(obj.(T), asked)
	o.GracePeriodSeconds = &seconds
	return true
}

type askedKey struct{}

// askedGrace is the grace period in the request; nil when it named none.
type askedGrace struct{ seconds *int64 }

// withAsked remembers what a delete asks before the store writes over it.
func withAsked(ctx context.Context, o *metav1.DeleteOptions) context.Context {
	if o == nil {
		return ctx
	}
	var a askedGrace
	if o.GracePeriodSeconds != nil {
		a.seconds = new(*o.GracePeriodSeconds)
	}
	return context.WithValue(ctx, askedKey{}, a)
}

// gracefulREST serves a resource whose objects are deleted gracefully.
type gracefulREST struct{ *store }

// Delete implements rest.GracefulDeleter.
func (r gracefulREST) Delete(ctx context.Context, name string, validate rest.ValidateObjectFunc, o *metav1.DeleteOptions) (runtime.Object, bool, error) {
	return r.store.Delete(withAsked(ctx, o), name, validate, o)
}

// DeleteCollection implements rest.CollectionDeleter.
func (r gracefulREST) DeleteCollection(ctx context.Context, validate rest.ValidateObjectFunc, o *metav1.DeleteOptions, list *metainternalversion.ListOptions) (runtime.Object, error) {
	return r.store.DeleteCollection(withAsked(ctx, o), validate, o, list)
}
