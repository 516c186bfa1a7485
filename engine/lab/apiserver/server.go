package apiserver

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net"
	"sync"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	endpointopenapi "k8s.io/apiserver/pkg/endpoints/openapi"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/clock"

	"github.com/kconverge/kconverge/engine/lab/apiserver/openapi"
	"github.com/kconverge/kconverge/engine/lab/scratch"
)

// OwnUserAgent is that of the server's own clients.
const OwnUserAgent = "kconverge-lab/own"

// ContextName is the name of cluster, user and context in the kubeconfig.
const ContextName = "kconverge-lab"

const (
	startTimeout = 30 * time.Second
	// drainTimeout bounds how long a stopping server waits for open requests;
	// watches are told to end at once. After closeConnections what is still
	// open is cut.
	drainTimeout     = time.Second
	closeConnections = 200 * time.Millisecond
)

// Server is a running API server with its storage. Its methods are safe for
// concurrent use.
type Server struct {
	client *restclient.Config
	ln     *listener
	stop   context.CancelFunc
	ended  chan struct{} // closed when the API server has ended
	err    error         // why, readable once ended is closed

	workers wait.Group
	etcd    *etcdServer
	release func() error // the storage directory
	stopped sync.Once
}

// Start runs a server until Stop is called; ctx bounds the start only. It
// returns when the server answers a list. What it started is gone again when
// it fails. A taken port is an *AddressError.
func Start(ctx context.Context, o Options) (_ *Server, err error) {
	o, err = o.withDefaults()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	ln, err := listen(o.Addr)
	if err != nil {
		return nil, err
	}
	s := &Server{ln: ln, ended: make(chan struct{})}
	defer func() {
		if err == nil {
			return
		}
		if s.stop == nil {
			// The API server does not own the listener yet.
			s.stop = func() {}
			close(s.ended)
			err = errors.Join(err, ln.Close())
		}
		clean, cancel := context.WithTimeout(context.Background(), startTimeout)
		defer cancel()
		err = errors.Join(err, s.Stop(clean))
	}()
	dir := o.Dir
	s.release = func() error { return nil }
	if dir == "" {
		storage, err := scratch.New()
		if err != nil {
			return nil, err
		}
		dir, s.release = storage.Path(), storage.Release
	}
	// etcd and the parts that need no storage start side by side.
	started := make(chan error, 1)
	go func() {
		var err error
		s.etcd, err = startEtcd(ctx, dir, o.Log)
		started <- err
	}()
	numbers := newServiceNumbers(o.NoIPv6)
	resources := allResources(numbers, o.CheckConfigMap)
	scheme, schemeErr := newScheme(resources)
	host, port, addressErr := ln.address()
	identity, identityErr := newServing(host, time.Now()) // checked against the real time
	if err := errors.Join(<-started, schemeErr, addressErr, identityErr); err != nil {
		return nil, err
	}
	s.client = &restclient.Config{
		Host:            "https://" + net.JoinHostPort(host, port),
		BearerToken:     o.Token,
		TLSClientConfig: restclient.TLSClientConfig{CAData: identity.ca},
		ContentConfig: restclient.ContentConfig{
			ContentType:        runtime.ContentTypeProtobuf,
			AcceptContentTypes: runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON,
		},
		QPS: -1,
		// What the server asks itself is told from what others ask (Options.Wrap).
		UserAgent: OwnUserAgent,
		// The lab talks to itself about Endpoints; that it is deprecated is
		// for the people who write manifests.
		WarningHandler: restclient.NoWarnings{},
	}
	if err := s.serve(ctx, ln, identity, scheme, resources, numbers, o); err != nil {
		return nil, err
	}
	return s, nil
}

// allResources lists what is served.
func allResources(numbers *serviceNumbers, check func(*corev1.ConfigMap) error) []resourceDefinition {
	return []resourceDefinition{
		pods(), services(numbers), nodes(), namespaces(), endpoints(), events(), configMaps(check), secrets(),
		deployments(), replicaSets(), statefulSets(), daemonSets(), controllerRevisions(), jobs(), endpointSlices(), leases(),
	}
}

func (s *Server) serve(ctx context.Context, ln *listener, identity serving, scheme *apiScheme, resources []resourceDefinition, numbers *serviceNumbers, o Options) error {
	client, err := kubernetes.NewForConfig(s.client)
	if err != nil {
		return fmt.Errorf("making the lab's client: %w", err)
	}
	meta, err := metadata.NewForConfig(s.client)
	if err != nil {
		return fmt.Errorf("making the lab's client: %w", err)
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	admission, err := newNamespaceAdmission(client, factory)
	if err != nil {
		return err
	}
	certificate, err := dynamiccertificates.NewStaticCertKeyContent("kconverge-lab", identity.cert, identity.key)
	if err != nil {
		return fmt.Errorf("reading the lab's certificate: %w", err)
	}
	storage, err := newEtcdOptions(s.etcd.client, scheme)
	if err != nil {
		return err
	}

	c := genericapiserver.NewConfig(scheme.codecs)
	c.SecureServing = &genericapiserver.SecureServingInfo{Listener: ln, Cert: certificate, MinTLSVersion: tls.VersionTLS12}
	c.ExternalAddress = ln.Addr().String()
	host, _, err := ln.address()
	if err != nil {
		return err
	}
	c.BuildHandlerChainFunc = ownSite{host, o.Wrap}.chain
	c.LoopbackClientConfig = s.client
	c.EffectiveVersion = newLabVersion()
	c.Authentication.Authenticator = tokenAuthenticator(o.Token)
	// Without an authorizer a create by server-side apply fails.
	c.Authorization.Authorizer = authorizerfactory.NewAlwaysAllowAuthorizer()
	c.AdmissionControl = admission
	c.RESTOptionsGetter = storage
	c.EnableProfiling, c.EnableIndex, c.EnableMetrics = false, false, true
	c.ShutdownWatchTerminationGracePeriod = drainTimeout
	namer := endpointopenapi.NewDefinitionNamer(scheme.Scheme)
	c.OpenAPIConfig = genericapiserver.DefaultOpenAPIConfig(openapi.GetOpenAPIDefinitions, namer)
	c.OpenAPIV3Config = genericapiserver.DefaultOpenAPIV3Config(openapi.GetOpenAPIDefinitions, namer)
	c.OpenAPIConfig.Info.Title, c.OpenAPIV3Config.Info.Title = ContextName, ContextName

	generic, err := c.Complete(nil).New(ContextName, genericapiserver.NewEmptyDelegate())
	if err != nil {
		return fmt.Errorf("making the lab's API server: %w", err)
	}
	generic.ShutdownTimeout = drainTimeout
	if err := install(generic, scheme, resources, storage, o.Clock); err != nil {
		generic.Destroy()
		return err
	}
	cleaner, err := newNamespaceCleaner(client, meta, factory.Core().V1().Namespaces().Informer(),
		factory.Core().V1().Namespaces().Lister(), namespacedResources(resources))
	if err != nil {
		generic.Destroy()
		return err
	}

	running, stop := context.WithCancel(context.Background())
	s.stop = stop
	prepared := generic.PrepareRun()
	go func() {
		s.err = prepared.RunWithContext(running)
		close(s.ended)
	}()
	s.workers.Start(func() { cleaner.run(running) })
	if err := s.waitReady(ctx, client); err != nil {
		return err
	}
	factory.Start(running.Done())
	s.workers.Start(func() { <-running.Done(); factory.Shutdown() })
	return s.seed(ctx, client, numbers)
}

// install adds the resources to the server, group by group.
func install(generic *genericapiserver.GenericAPIServer, scheme *apiScheme, resources []resourceDefinition, options *etcdOptions, clk clock.PassiveClock) error {
	groups := map[string]*genericapiserver.APIGroupInfo{}
	at := func(gv schema.GroupVersion) map[string]rest.Storage {
		g, ok := groups[gv.Group]
		if !ok {
			info := genericapiserver.NewDefaultAPIGroupInfo(gv.Group, scheme.Scheme, scheme.parameters, scheme.codecs)
			g = &info
			groups[gv.Group] = g
		}
		if g.VersionedResourcesStorageMap[gv.Version] == nil {
			g.VersionedResourcesStorageMap[gv.Version] = map[string]rest.Storage{}
		}
		return g.VersionedResourcesStorageMap[gv.Version]
	}
	for _, r := range resources {
		made, err := r.storage(scheme, options, clk)
		if err != nil {
			return err
		}
		maps.Copy(at(r.groupVersion()), made)
	}
	at(eventsv1.SchemeGroupVersion)["events"] = at(corev1.SchemeGroupVersion)["events"]
	at(authorizationv1.SchemeGroupVersion)["selfsubjectaccessreviews"] = accessREST{}
	if err := generic.InstallLegacyAPIGroup(genericapiserver.DefaultLegacyAPIPrefix, groups[""]); err != nil {
		return fmt.Errorf("installing the core API: %w", err)
	}
	for _, v := range versions {
		if g, ok := groups[v.Group]; ok && v.Group != "" {
			if err := generic.InstallAPIGroup(g); err != nil {
				return fmt.Errorf("installing the API group %s: %w", v.Group, err)
			}
		}
	}
	return nil
}

func namespacedResources(resources []resourceDefinition) (out []schema.GroupVersionResource) {
	for _, r := range resources {
		if r.isNamespaced() {
			out = append(out, r.groupVersion().WithResource(r.pluralName()))
		}
	}
	return out
}

// waitReady returns when a list is answered.
func (s *Server) waitReady(ctx context.Context, client kubernetes.Interface) error {
	var last error
	err := wait.PollUntilContextCancel(ctx, 2*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		select {
		case <-s.ended:
			return false, fmt.Errorf("the lab's API server ended while starting: %w", s.err)
		default:
		}
		_, last = client.CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("the lab's API server at %s did not answer: %w", s.URL(), errors.Join(err, last))
	}
	return nil
}

// seed creates the first namespaces and takes the numbers of stored Services.
func (s *Server) seed(ctx context.Context, client kubernetes.Interface, numbers *serviceNumbers) error {
	stored, err := client.CoreV1().Services("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("reading stored Services: %w", err)
	}
	numbers.restore(stored.Items)
	for _, name := range firstNamespaces {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if _, err := client.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("creating namespace %s: %w", name, err)
		}
	}
	return nil
}

// URL is where the server listens, as https://host:port.
func (s *Server) URL() string { return s.client.Host }

// Config returns a client configuration with the lab's CA and token, protobuf,
// no client-side rate limits and no warnings. Each call returns a copy.
func (s *Server) Config() *restclient.Config { return restclient.CopyConfig(s.client) }

// Kubeconfig returns a self-contained kubeconfig file: CA and token inline,
// context ContextName. It gives full access to the lab: write it with mode
// 0600.
func (s *Server) Kubeconfig() ([]byte, error) {
	c := clientcmdapi.NewConfig()
	c.Clusters[ContextName] = &clientcmdapi.Cluster{Server: s.client.Host, CertificateAuthorityData: s.client.CAData}
	c.AuthInfos[ContextName] = &clientcmdapi.AuthInfo{Token: s.client.BearerToken}
	c.Contexts[ContextName] = &clientcmdapi.Context{Cluster: ContextName, AuthInfo: ContextName, Namespace: metav1.NamespaceDefault}
	c.CurrentContext = ContextName
	out, err := clientcmd.Write(*c)
	if err != nil {
		return nil, fmt.Errorf("writing the lab's kubeconfig: %w", err)
	}
	return out, nil
}

// Done is closed when the API server has ended, by Stop or by itself.
func (s *Server) Done() <-chan struct{} { return s.ended }

// Stop ends the API server, then etcd, and removes the storage. Past ctx's
// deadline it gives up waiting and removes the storage all the same. Further
// calls wait for the first and return nil.
func (s *Server) Stop(ctx context.Context) (err error) {
	s.stopped.Do(func() { err = s.shutDown(ctx) })
	return err
}

func (s *Server) shutDown(ctx context.Context) error {
	s.stop()
	cut := time.AfterFunc(closeConnections, s.ln.closeConnections)
	defer cut.Stop()
	var errs []error
	select {
	case <-s.ended:
		errs = append(errs, s.err)
		s.workers.Wait()
	case <-ctx.Done():
		errs = append(errs, fmt.Errorf("the lab's API server did not stop in time: %w", ctx.Err()))
	}
	if s.etcd != nil {
		errs = append(errs, s.etcd.stopWithin(ctx))
	}
	if s.release != nil {
		errs = append(errs, s.release())
	}
	return errors.Join(errs...)
}
