package rulesync

import (
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/collect/kube"
)

// service is the content of an informer's object, nil for what is no Service.
func service(obj any) (types.NamespacedName, *collect.Service, *corev1.Service) {
	if d, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = d.Obj
	}
	s, ok := obj.(*corev1.Service)
	if !ok {
		return types.NamespacedName{}, nil, nil
	}
	return types.NamespacedName{Namespace: s.Namespace, Name: s.Name}, kube.ConvertService(s), s
}

// endpointSlice is the content of an informer's object; the content is nil for
// slices that lead nowhere (names instead of addresses).
func endpointSlice(obj any) (types.NamespacedName, *collect.EndpointSlice, *discoveryv1.EndpointSlice) {
	if d, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = d.Obj
	}
	s, ok := obj.(*discoveryv1.EndpointSlice)
	if !ok {
		return types.NamespacedName{}, nil, nil
	}
	name := types.NamespacedName{Namespace: s.Namespace, Name: s.Name}
	out, ok := kube.ConvertEndpointSlice(s)
	if !ok {
		return name, nil, s
	}
	return name, out, s
}
