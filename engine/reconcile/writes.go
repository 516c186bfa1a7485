package reconcile

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
	typeddiscovery "k8s.io/client-go/kubernetes/typed/discovery/v1"
)

// recorder is one worker's client: it notes what was written. Each worker has
// its own, and works on one Service at a time, so no lock is needed and no
// write can be counted for the wrong Service.
type recorder struct {
	kubernetes.Interface
	writes   []string
	conflict bool
}

// errConflict is wrapped by the error of a sync in which a write was refused
// because the object had changed since it was read.
var errConflict = errors.New("changed by another hand meanwhile")

// finish returns what was written since the last call, and the sync's error
// marked with errConflict when that is behind it: k8s.io/endpointslice keeps
// only the text of an API error.
func (r *recorder) finish(err error) ([]string, error) {
	if err != nil && r.conflict {
		err = fmt.Errorf("%w: %w", errConflict, err)
	}
	writes := r.writes
	r.writes, r.conflict = nil, false
	return writes, err
}

func (r *recorder) note(err error, what string) {
	if err == nil {
		r.writes = append(r.writes, what)
	}
	if apierrors.IsConflict(err) {
		r.conflict = true
	}
}

// DiscoveryV1 implements kubernetes.Interface.
func (r *recorder) DiscoveryV1() typeddiscovery.DiscoveryV1Interface {
	return discoveryRecorder{r.Interface.DiscoveryV1(), r}
}

type discoveryRecorder struct {
	typeddiscovery.DiscoveryV1Interface
	r *recorder
}

// EndpointSlices implements DiscoveryV1Interface.
func (d discoveryRecorder) EndpointSlices(namespace string) typeddiscovery.EndpointSliceInterface {
	return sliceRecorder{d.DiscoveryV1Interface.EndpointSlices(namespace), d.r}
}

type sliceRecorder struct {
	typeddiscovery.EndpointSliceInterface
	r *recorder
}

func (s sliceRecorder) Create(ctx context.Context, o *discoveryv1.EndpointSlice, opts metav1.CreateOptions) (*discoveryv1.EndpointSlice, error) {
	out, err := s.EndpointSliceInterface.Create(ctx, o, opts)
	if err == nil {
		s.r.note(nil, "created "+out.Name)
	}
	return out, err
}

func (s sliceRecorder) Update(ctx context.Context, o *discoveryv1.EndpointSlice, opts metav1.UpdateOptions) (*discoveryv1.EndpointSlice, error) {
	out, err := s.EndpointSliceInterface.Update(ctx, o, opts)
	s.r.note(err, "updated "+o.Name)
	return out, err
}

func (s sliceRecorder) Delete(ctx context.Context, name string, opts metav1.DeleteOptions) error {
	err := s.EndpointSliceInterface.Delete(ctx, name, opts)
	s.r.note(err, "deleted "+name)
	return err
}

// CoreV1 implements kubernetes.Interface.
func (r *recorder) CoreV1() typedcore.CoreV1Interface { return coreRecorder{r.Interface.CoreV1(), r} }

type coreRecorder struct {
	typedcore.CoreV1Interface
	r *recorder
}

// Endpoints implements CoreV1Interface.
func (c coreRecorder) Endpoints(namespace string) typedcore.EndpointsInterface {
	return endpointsRecorder{c.CoreV1Interface.Endpoints(namespace), c.r}
}

type endpointsRecorder struct {
	typedcore.EndpointsInterface
	r *recorder
}

func (e endpointsRecorder) Create(ctx context.Context, o *corev1.Endpoints, opts metav1.CreateOptions) (*corev1.Endpoints, error) { //nolint:staticcheck // the legacy controller
	out, err := e.EndpointsInterface.Create(ctx, o, opts)
	e.r.note(err, "created Endpoints "+o.Name)
	return out, err
}

func (e endpointsRecorder) Update(ctx context.Context, o *corev1.Endpoints, opts metav1.UpdateOptions) (*corev1.Endpoints, error) { //nolint:staticcheck // the legacy controller
	out, err := e.EndpointsInterface.Update(ctx, o, opts)
	e.r.note(err, "updated Endpoints "+o.Name)
	return out, err
}

func (e endpointsRecorder) Delete(ctx context.Context, name string, opts metav1.DeleteOptions) error {
	err := e.EndpointsInterface.Delete(ctx, name, opts)
	e.r.note(err, "deleted Endpoints "+name)
	return err
}
