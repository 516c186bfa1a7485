package faults

import (
	"fmt"
	"regexp"
	"slices"
	"sort"
	"strings"
)

// target is what a fault is limited to. The zero value is everything.
type target struct {
	// nodes, pods and services: of the names one must fit; none means all.
	nodes, pods, services []string
	// verbs, resources and clients of requests, and names of objects.
	verbs, resources, clients, names []string
}

// words are names with "+" or "," between them.
var words = regexp.MustCompile(`^[A-Za-z0-9][-A-Za-z0-9./]*([+,][A-Za-z0-9][-A-Za-z0-9./]*)*$`)

func list(s, of string) ([]string, error) {
	if !words.MatchString(s) {
		return nil, fmt.Errorf("%q are no names of %s: write one, or several with + between them", s, of)
	}
	return strings.FieldsFunc(s, func(r rune) bool { return r == '+' || r == ',' }), nil
}

func nowhere(s string) (target, error) {
	return target{}, fmt.Errorf("it cannot be limited: leave @%s out", s)
}

func ofNodes(s string) (t target, err error) {
	t.nodes, err = list(s, "nodes")
	return t, err
}

func ofPods(s string) (t target, err error) {
	t.pods, err = list(s, "pods or of workloads")
	return t, err
}

func ofServices(s string) (t target, err error) {
	t.services, err = list(s, "Services")
	return t, err
}

// Clients of the API server, as targets name them.
const (
	ClientReconciler = "reconciler"
	ClientWorkloads  = "workloads"
	ClientKubelet    = "kubelet"
	ClientProxy      = "proxy"
	ClientScreen     = "screen"
	ClientViewer     = "viewer"
	ClientKubectl    = "kubectl"
)

// Clients are the names that a target may give to clients.
var Clients = []string{ClientReconciler, ClientWorkloads, ClientKubelet, ClientProxy, ClientScreen, ClientViewer, ClientKubectl}

// ofRequests reads "verb=update+patch,resource=endpointslices,client=kubectl".
func ofRequests(s string) (target, error) {
	var t target
	for _, part := range strings.Split(s, ",") {
		key, value, ok := strings.Cut(strings.TrimSpace(part), "=")
		to := map[string]*[]string{"verb": &t.verbs, "resource": &t.resources, "client": &t.clients, "name": &t.names, "node": &t.nodes}[key]
		if !ok || to == nil || *to != nil {
			return t, fmt.Errorf("%q does not name requests: write verb=, resource=, name= or client= each with a name, and commas between them", part)
		}
		var err error
		if *to, err = list(value, key+"s"); err != nil {
			return t, err
		}
	}
	if err := checkClients(t.clients); err != nil {
		return t, err
	}
	return t, checkVerbs(t.verbs)
}

func checkClients(names []string) error {
	for _, c := range names {
		if !slices.Contains(Clients, c) {
			return fmt.Errorf("no client is called %q: there are %s", c, strings.Join(Clients, ", "))
		}
	}
	return nil
}

// verbs that requests have.
var verbs = []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}

func checkVerbs(names []string) error {
	for _, v := range names {
		if !slices.Contains(verbs, v) {
			return fmt.Errorf("no verb is called %q: there are %s", v, strings.Join(verbs, ", "))
		}
	}
	return nil
}

// ofWatches reads what ofRequests does, or just the name of a client, or that of a
// node for the watches of its proxy.
func ofWatches(s string) (target, error) {
	if strings.Contains(s, "=") {
		t, err := ofRequests(s)
		if err == nil && len(t.verbs) > 0 {
			err = fmt.Errorf("leave verb= out: these are watches")
		}
		if len(t.nodes) > 0 && len(t.clients) == 0 {
			t.clients = []string{ClientProxy}
		}
		return t, err
	}
	names, err := list(s, "clients or nodes")
	if err != nil {
		return target{}, err
	}
	var t target
	for _, n := range names {
		if slices.Contains(Clients, n) {
			t.clients = append(t.clients, n)
		} else {
			t.nodes = append(t.nodes, n)
		}
	}
	if len(t.nodes) > 0 && len(t.clients) > 0 {
		return t, fmt.Errorf("%q names clients and nodes: set the fault twice", s)
	}
	if len(t.nodes) > 0 {
		t.clients = []string{ClientProxy}
	}
	return t, nil
}

// canonical puts the parts of a target in one order, so that the same target set twice
// is one fault.
func canonical(s string) string {
	parts := strings.Split(s, ",")
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	sort.Strings(parts)
	return strings.Join(parts, ",")
}

// node reports that a node of that name is meant.
func (t *target) node(name string) bool { return len(t.nodes) == 0 || slices.Contains(t.nodes, name) }

// pod reports that a pod is meant: by its name, or that of what made it, with or
// without its namespace.
func (t *target) pod(namespace, name string) bool {
	if len(t.pods) == 0 {
		return true
	}
	return slices.ContainsFunc(t.pods, func(p string) bool {
		ns, n, ok := strings.Cut(p, "/")
		if !ok {
			n = p
		} else if ns != namespace {
			return false
		}
		return name == n || strings.HasPrefix(name, n+"-")
	})
}

// service reports that a Service, "namespace/name", is meant.
func (t *target) service(key string) bool {
	if len(t.services) == 0 {
		return true
	}
	_, name, _ := strings.Cut(key, "/")
	return slices.ContainsFunc(t.services, func(s string) bool { return s == key || s == name })
}
