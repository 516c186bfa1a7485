package apiserver

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
)

// logREST answers `kubectl logs` with the reason why there are none, where a
// missing path would look like a broken server.
type logREST struct {
	pods *genericregistry.Store
}

var _ rest.Getter = &logREST{}

// New implements rest.Storage.
func (r *logREST) New() runtime.Object { return &corev1.Pod{} }

// Destroy implements rest.Storage.
func (r *logREST) Destroy() {}

// Get implements rest.Getter.
func (r *logREST) Get(ctx context.Context, name string, o *metav1.GetOptions) (runtime.Object, error) {
	if _, err := r.pods.Get(ctx, name, o); err != nil {
		return nil, err
	}
	return nil, apierrors.NewBadRequest(fmt.Sprintf("the lab's pods run no program, so pod %s has no log; see: kubectl events --for pod/%s", name, name))
}
