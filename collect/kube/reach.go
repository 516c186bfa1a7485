package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/kconverge/kconverge/collect"
)

// reachTimeout is how long Reach waits when its context sets no earlier end.
const reachTimeout = 5 * time.Second

// UnreachableError says that an API server did not answer, or turned the caller
// away. Context is the kubeconfig's context, when the caller knows one and sets
// it.
type UnreachableError struct {
	Server  string
	Context string
	Err     error
}

// Error names the server, the context and the way out.
func (e *UnreachableError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "cannot reach the cluster at %s", e.Server)
	if e.Context != "" {
		fmt.Fprintf(&b, " (context %q)", e.Context)
	}
	fmt.Fprintf(&b, ": %s", describe(e.Err, ""))
	if apierrors.IsUnauthorized(e.Err) {
		b.WriteString("; log in again, or choose another context with --context")
	} else {
		b.WriteString("; check that it runs and that the network leads there, choose another context with --context, or start one with: kconverge lab")
	}
	return b.String()
}

// Unwrap returns the cause.
func (e *UnreachableError) Unwrap() error { return e.Err }

// Reach asks the server for its version ("v1.37.2"). A server that answers but
// forbids the question counts as reached, with an empty version. Any other
// failure is an *UnreachableError. It waits at most five seconds.
func Reach(ctx context.Context, cfg *rest.Config) (serverVersion string, err error) {
	c := ourConfig(cfg, "")
	gv := scheme.Scheme.PrioritizedVersionsForGroup("")[0]
	c.GroupVersion, c.APIPath = &gv, "/api"
	c.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	client, err := rest.RESTClientFor(c)
	if err != nil {
		return "", fmt.Errorf("the configuration for %s cannot be used: %w", cfg.Host, err)
	}
	ctx, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	body, err := client.Get().AbsPath("/version").MaxRetries(0).Do(ctx).Raw()
	if apierrors.IsForbidden(err) {
		return "", nil
	}
	if err != nil {
		return "", &UnreachableError{Server: cfg.Host, Err: err}
	}
	var info version.Info
	if err := json.Unmarshal(body, &info); err != nil {
		return "", &UnreachableError{Server: cfg.Host, Err: fmt.Errorf("its answer is not that of a Kubernetes API server: %w", err)}
	}
	return collect.Plain(info.GitVersion), nil
}

// describe gives an error in a few words, without what the reader knows. server
// is empty where it has been named.
func describe(err error, server string) string {
	var op *net.OpError
	var dns *net.DNSError
	var ue *url.Error
	switch {
	case err == nil:
		return "no reason given"
	case apierrors.IsUnauthorized(err):
		return "the server does not accept the credentials (401)"
	case apierrors.IsResourceExpired(err), apierrors.IsGone(err):
		return "the server has forgotten the point to continue from (410)"
	case errors.Is(err, context.DeadlineExceeded):
		return "no answer in time"
	case errors.Is(err, syscall.ECONNREFUSED):
		if server == "" {
			return "connection refused"
		}
		return "connection refused at " + server
	case errors.As(err, &dns):
		return fmt.Sprintf("no address for host %q", collect.Plain(dns.Name))
	case errors.As(err, &op):
		return collect.Plain(op.Op + ": " + op.Err.Error())
	case errors.As(err, &ue):
		return collect.Plain(ue.Err.Error())
	}
	return collect.Plain(err.Error())
}

// forbidden tells what is missing and how to get it.
func (f *feed) forbidden(verb string, err error) string {
	var b strings.Builder
	fmt.Fprintf(&b, "not allowed to %s %s", verb, f.where())
	if s := apierrors.APIStatus(nil); errors.As(err, &s) && s.Status().Message != "" {
		fmt.Fprintf(&b, " (%s)", collect.Plain(s.Status().Message))
	}
	kind, scope := "clusterrole", ""
	if f.ns != "" {
		kind, scope = "role", " -n "+f.ns
	}
	fmt.Fprintf(&b, "; ask for: kubectl create %s kconverge --verb=get,list,watch --resource=%s%s", kind, f.res.plural(), scope)
	if f.ns == "" && f.res.namespaced {
		b.WriteString(", or choose a namespace with -n")
	}
	return b.String()
}
