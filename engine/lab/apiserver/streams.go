package apiserver

import (
	"context"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
)

// refusedStream answers what would open a stream into a container or a network
// (kubectl exec, attach, port-forward, proxy) with the reason why there is none,
// where a missing path would look like a broken server.
type refusedStream struct {
	of      *genericregistry.Store
	options func() runtime.Object // its kind, for discovery
	methods []string
	subpath bool
	why     func(name string) string
}

var _ rest.Connecter = &refusedStream{}

// New implements rest.Storage.
func (r *refusedStream) New() runtime.Object { return r.options() }

// Destroy implements rest.Storage.
func (r *refusedStream) Destroy() {}

// ConnectMethods implements rest.Connecter.
func (r *refusedStream) ConnectMethods() []string { return r.methods }

// NewConnectOptions implements rest.Connecter: the options are not looked at.
func (r *refusedStream) NewConnectOptions() (runtime.Object, bool, string) {
	return nil, r.subpath, ""
}

// Connect implements rest.Connecter.
func (r *refusedStream) Connect(ctx context.Context, name string, _ runtime.Object, _ rest.Responder) (http.Handler, error) {
	if _, plain, _, ok := utilnet.SplitSchemeNamePort(name); ok && r.subpath {
		name = plain // a proxied name may say https:NAME:PORT
	}
	if _, err := r.of.Get(ctx, name, &metav1.GetOptions{}); err != nil {
		return nil, err
	}
	return nil, apierrors.NewBadRequest(r.why(name))
}

// The methods of the real server (pkg/registry/core/pod/rest/subresources.go,
// pkg/registry/core/service/proxy.go).
var (
	upgradeMethods = []string{http.MethodGet, http.MethodPost}
	proxyMethods   = []string{
		http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions,
	}
)

// podStreams are the streams below a pod, by subresource.
func podStreams(pods *genericregistry.Store) map[string]rest.Storage {
	noProgram := func(name string) string {
		return fmt.Sprintf("the lab's pods run no program, so there is nothing to run a command in or to attach to in pod %s; see: kubectl describe pod/%s", name, name)
	}
	return map[string]rest.Storage{
		"exec":   &refusedStream{of: pods, options: func() runtime.Object { return &corev1.PodExecOptions{} }, methods: upgradeMethods, why: noProgram},
		"attach": &refusedStream{of: pods, options: func() runtime.Object { return &corev1.PodAttachOptions{} }, methods: upgradeMethods, why: noProgram},
		"portforward": &refusedStream{of: pods, options: func() runtime.Object { return &corev1.PodPortForwardOptions{} }, methods: upgradeMethods,
			why: func(name string) string {
				return fmt.Sprintf("the lab forwards no ports: pod %s answers inside the nodes' own networks only; for what leads to it: kubectl get endpointslices", name)
			}},
		"proxy": refusedProxy(pods, func() runtime.Object { return &corev1.PodProxyOptions{} }, "pod"),
	}
}

func refusedProxy(of *genericregistry.Store, options func() runtime.Object, what string) *refusedStream {
	return &refusedStream{of: of, options: options, methods: proxyMethods, subpath: true, why: func(name string) string {
		return fmt.Sprintf("the lab's API server passes no requests on: %s %s answers inside the nodes' own networks only; see: kubectl describe %s/%s", what, name, what, name)
	}}
}
