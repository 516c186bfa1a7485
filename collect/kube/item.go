package kube

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kconverge/kconverge/collect"
)

// item is an API object trimmed as soon as it is decoded: its payload, its
// identity and when the watch delivered it. It takes the object's place in the
// reflector, so that whole objects are never kept. Of ObjectMeta only name,
// namespace, UID, resourceVersion and, for bookmarks, the annotations are set.
type item struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	at      time.Time
	payload collect.Payload
}

// newItem trims an object of the resource. Bookmarks have no payload.
func (r *resource) newItem(o runtime.Object, at time.Time, bookmark bool) (*item, error) {
	m, err := meta.Accessor(o)
	if err != nil {
		return nil, fmt.Errorf("the server sent a %T where a %s was expected", o, r.kind)
	}
	it := &item{at: at}
	it.ResourceVersion = m.GetResourceVersion()
	if bookmark {
		it.Annotations = m.GetAnnotations()
		return it, nil
	}
	it.Name, it.Namespace, it.UID = m.GetName(), m.GetNamespace(), m.GetUID()
	it.payload = r.convert(o)
	return it, nil
}

// GetObjectKind implements runtime.Object.
func (i *item) GetObjectKind() schema.ObjectKind { return &i.TypeMeta }

// DeepCopyObject implements runtime.Object. Payloads are immutable and shared.
func (i *item) DeepCopyObject() runtime.Object {
	c := *i
	return &c
}
