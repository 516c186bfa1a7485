package main

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/kconverge/kconverge/collect/agent"
	"github.com/kconverge/kconverge/collect/kube"
	"github.com/kconverge/kconverge/collect/nodelog"
)

// objects decodes YAML documents strictly.
func objects(t *testing.T, text string) []runtime.Object {
	t.Helper()
	decoder := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	var out []runtime.Object
	for r := yaml.NewDocumentDecoder(io.NopCloser(strings.NewReader(text))); ; {
		doc := make([]byte, 1<<20)
		n, err := r.Read(doc)
		if errors.Is(err, io.EOF) {
			return out
		} else if err != nil {
			t.Fatal(err)
		}
		o, _, err := decoder.Decode(doc[:n], nil, nil)
		if err != nil {
			t.Fatalf("%v in\n%s", err, doc[:n])
		}
		out = append(out, o)
	}
}

func TestTheManifestGivesAnAgentNoMoreThanItNeeds(t *testing.T) {
	var b bytes.Buffer
	if err := (manifest{`example/agent:v1`, "agents", time.Second}).write(&b); err != nil {
		t.Fatal(err)
	}
	var ds *appsv1.DaemonSet
	var role *rbacv1.Role
	for _, o := range objects(t, b.String()) {
		switch o := o.(type) {
		case *appsv1.DaemonSet:
			ds = o
		case *rbacv1.Role:
			role = o
		case *corev1.Namespace:
			if o.Name != "agents" {
				t.Errorf("namespace %s", o.Name)
			}
		default:
			t.Errorf("unexpected %T", o)
		}
	}
	if ds == nil || role == nil || ds.Namespace != "agents" || role.Namespace != "agents" {
		t.Fatal("the DaemonSet or the Role is missing, or not in the namespace")
	}
	p := ds.Spec.Template.Spec
	c := p.Containers[0]
	sc := c.SecurityContext
	switch {
	case !p.HostNetwork, p.AutomountServiceAccountToken == nil || *p.AutomountServiceAccountToken:
		t.Error("wants the host's network and no token")
	case *p.SecurityContext.RunAsUser != 0, !*sc.ReadOnlyRootFilesystem, *sc.AllowPrivilegeEscalation, sc.Privileged != nil:
		t.Errorf("security %+v", sc)
	case !slices.Equal(sc.Capabilities.Drop, []corev1.Capability{"ALL"}), !slices.Equal(sc.Capabilities.Add, []corev1.Capability{"NET_ADMIN"}):
		t.Errorf("capabilities %+v", sc.Capabilities)
	case len(p.Volumes) > 0, len(p.Tolerations) != 1 || p.Tolerations[0].Operator != corev1.TolerationOpExists || p.Tolerations[0].Key != "":
		t.Errorf("volumes %v, tolerations %v", p.Volumes, p.Tolerations)
	case c.Image != "example/agent:v1", c.Name != nodelog.Container, c.Env[0].ValueFrom.FieldRef.FieldPath != "spec.nodeName":
		t.Errorf("container %+v", c)
	case !slices.Equal(c.Args, []string{"--heartbeat=1s"}):
		t.Errorf("arguments %q", c.Args)
	case c.Resources.Requests.Memory().IsZero(), c.Resources.Limits.Memory().IsZero():
		t.Error("no resources")
	case ds.Spec.Template.Labels[nodelog.AgentLabel] != nodelog.AgentName:
		t.Errorf("labels %v", ds.Spec.Template.Labels)
	}
}

// Names that YAML takes for a number or a boolean are names all the same.
func TestANamespaceMayLookLikeANumber(t *testing.T) {
	for _, ns := range []string{"123", "true", "1e3", "null"} {
		var b bytes.Buffer
		if err := (manifest{"example/agent:v1", ns, agent.DefaultHeartbeat}).write(&b); err != nil {
			t.Fatal(err)
		}
		found := 0
		for _, o := range objects(t, b.String()+"\n---\n"+viewerRoles([]string{ns})) {
			switch o := o.(type) {
			case *corev1.Namespace:
				if found++; o.Name != ns {
					t.Errorf("namespace %q, want %q", o.Name, ns)
				}
			case metav1.Object:
				if o.GetNamespace() == "" { // the ClusterRole
					continue
				}
				if found++; o.GetNamespace() != ns {
					t.Errorf("%T in %q, want %q", o, o.GetNamespace(), ns)
				}
			}
		}
		if found != 4 {
			t.Errorf("%d objects with the namespace", found)
		}
	}
}

func TestTheLabTakesTheManifest(t *testing.T) {
	h := newHome(t)
	h.lab(t, "--nodes", "1")
	_, manifest, _ := h.run(t, nil, "agent", "manifest")
	// The lab serves no Roles.
	docs := strings.Split(manifest, "\n---\n")
	for i, doc := range docs[:2] {
		file := filepath.Join(h.dir, "manifest.yaml")
		if err := os.WriteFile(file, []byte(doc), 0o600); err != nil {
			t.Fatal(err)
		}
		dry := "--dry-run=server"
		if i == 0 {
			dry = "--dry-run=none" // what is in the namespace needs it
		}
		h.kubectl(t, "apply", dry, "-f", file)
	}
}

// gate lets through to a cluster what some roles allow, and what every user may
// do (discovery).
type gate struct {
	forward http.Handler

	mu     sync.Mutex
	roles  []rbacv1.PolicyRule
	in     map[string][]rbacv1.PolicyRule // by namespace
	denied []string
	passed int
}

func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	info, err := (&request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}).NewRequestInfo(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if g.allows(info) {
		g.mu.Lock()
		g.passed++
		g.mu.Unlock()
		g.forward.ServeHTTP(w, r)
		return
	}
	g.mu.Lock()
	g.denied = append(g.denied, info.Verb+" "+r.URL.Path)
	g.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusForbidden)
	_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`)
}

func (g *gate) allows(i *request.RequestInfo) bool {
	if !i.IsResourceRequest {
		return i.Verb == "get"
	}
	resource := i.Resource
	if i.Subresource != "" {
		resource += "/" + i.Subresource
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.ContainsFunc(append(slices.Clone(g.roles), g.in[i.Namespace]...), func(r rbacv1.PolicyRule) bool {
		return slices.Contains(r.Verbs, i.Verb) && slices.Contains(r.APIGroups, i.APIGroup) && slices.Contains(r.Resources, resource)
	})
}

// gated starts a gate in front of a home's lab and writes a kubeconfig that
// leads to it.
func (h *home) gated(t *testing.T, roles string) (g *gate, kubeconfig string) {
	t.Helper()
	g = &gate{in: map[string][]rbacv1.PolicyRule{}}
	for _, o := range objects(t, roles) {
		switch o := o.(type) {
		case *rbacv1.ClusterRole:
			g.roles = append(g.roles, o.Rules...)
		case *rbacv1.Role:
			g.in[o.Namespace] = append(g.in[o.Namespace], o.Rules...)
		}
	}
	config, err := clientcmd.BuildConfigFromFlags("", h.kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		t.Fatal(err)
	}
	target, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	g.forward = &httputil.ReverseProxy{
		Transport: transport, FlushInterval: -1,
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) },
	}
	server := httptest.NewServer(g)
	t.Cleanup(server.CloseClientConnections)
	kubeconfig = filepath.Join(h.dir, "gated.kubeconfig")
	err = clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{"c": {Server: server.URL}},
		Contexts: map[string]*clientcmdapi.Context{"c": {Cluster: "c"}}, CurrentContext: "c",
	}, kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	return g, kubeconfig
}

// What info --rbac prints is enough for watch, run, wait and info, and nothing
// else is asked for.
func TestThePrintedRolesSufficeAndNothingElseIsAsked(t *testing.T) {
	h := newHome(t)
	h.lab(t, "--nodes", "1", "--seed")
	for _, scope := range [][]string{nil, {"-A"}} {
		_, roles, stderr := h.run(t, nil, append([]string{"info", "--rbac"}, scope...)...)
		if roles == "" {
			t.Fatal(stderr)
		}
		g, kubeconfig := h.gated(t, roles)
		code, stdout, stderr := h.run(t, nil, append([]string{"watch", "--headless", "--for", "5s", "-o", "json", "--kubeconfig", kubeconfig}, scope...)...)
		if code != exitCannotTell { // nobody reads rules
			t.Errorf("watch ended with %d: %s", code, stderr)
		}
		if s := web(t, parse(t, stdout)); s.Planes.Slices == nil || s.Planes.Slices.Have != 4 || len(s.Coverage.BlindPlanes) > 0 {
			t.Errorf("%+v", s)
		}
		g.mu.Lock()
		if len(g.denied) > 0 || g.passed == 0 {
			t.Errorf("%v: %d requests passed, denied: %v", scope, g.passed, g.denied)
		}
		g.mu.Unlock()
		if _, stdout, _ := h.run(t, nil, append([]string{"info", "--kubeconfig", kubeconfig}, scope...)...); strings.Count(stdout, "seen\n") != len(kube.Rights()) {
			t.Errorf("info:\n%s", stdout)
		}
	}
}

// What is forbidden makes one plane blind, and that is said.
func TestAForbiddenResourceIsOneBlindPlane(t *testing.T) {
	h := newHome(t)
	h.lab(t, "--nodes", "1", "--seed")
	_, roles, _ := h.run(t, nil, "info", "--rbac")
	g, kubeconfig := h.gated(t, roles)
	g.mu.Lock()
	for i := range g.in[metav1.NamespaceDefault] {
		r := &g.in[metav1.NamespaceDefault][i]
		r.Resources = slices.DeleteFunc(r.Resources, func(s string) bool { return s == "endpoints" })
	}
	g.mu.Unlock()
	code, stdout, stderr := h.run(t, nil, "watch", "--headless", "--for", "5s", "-o", "json", "--kubeconfig", kubeconfig)
	if code != exitCannotTell {
		t.Errorf("watch ended with %d: %s", code, stderr)
	}
	s := web(t, parse(t, stdout))
	if len(s.Coverage.BlindPlanes) != 1 || !strings.Contains(s.Coverage.BlindPlanes["endpoints"], "not allowed") {
		t.Errorf("blind planes %v", s.Coverage.BlindPlanes)
	}
	if s.Planes.Slices == nil || s.Planes.Slices.Have != 4 {
		t.Errorf("slices %+v", s.Planes.Slices)
	}
	_, stdout, _ = h.run(t, nil, "info", "--kubeconfig", kubeconfig)
	if !strings.Contains(stdout, "forbidden to list") || !strings.Contains(stdout, "info --rbac") {
		t.Errorf("info:\n%s", stdout)
	}
}
