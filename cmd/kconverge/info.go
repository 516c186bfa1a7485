package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/collect/kube"
	"github.com/kconverge/kconverge/collect/nodelog"
)

// infoLimit bounds each question to the cluster.
const infoLimit = 10 * time.Second

func newInfo() *cobra.Command {
	var rbac bool
	var agents string
	c := &cobra.Command{
		Use:   "info [RECORDING]",
		Short: "Say what the cluster offers (its version, which planes can be seen, its service proxy), or what a recording holds",
		Long: `info asks the current cluster what can be seen of it. With --rbac it asks nobody
and prints the Roles that watch needs, to pipe to kubectl apply -f -. With the name of
a file it says what that recording holds.`,
		Args: cobra.MaximumNArgs(1),
	}
	where := newBareClusterFlags(c.Flags())
	c.Flags().BoolVar(&rbac, "rbac", false, "print the Roles that a viewer needs (with -A for all namespaces)")
	c.Flags().StringVar(&agents, "agents-namespace", nodelog.DefaultNamespace, "the namespace in which the agents run")
	c.RunE = func(c *cobra.Command, args []string) error {
		if len(args) == 1 && rbac {
			return exitf(exitUsage, "--rbac is about a cluster, and %s a recording: choose one", args[0])
		}
		if len(args) == 1 {
			return recordingInfo(c.OutOrStdout(), args[0])
		}
		if rbac {
			var namespaces []string
			if !where.allNamespaces {
				var err error
				if namespaces, err = where.namespaces(); err != nil {
					return err
				}
			}
			_, err := io.WriteString(c.OutOrStdout(), viewerRoles(namespaces)+"---\n"+agentsRole(agents))
			return err
		}
		_, done, err := captureLogs()
		if err != nil {
			return exitWith(exitUsage, err)
		}
		defer done()
		ctx, stop := interruptible(c.Context())
		defer stop()
		cluster, err := where.choose()
		if err != nil {
			return err
		}
		if err := cluster.reach(ctx); err != nil {
			return err
		}
		return cluster.info(ctx, c.OutOrStdout(), agents)
	}
	return c
}

// info writes what the cluster offers. It only gets, lists and watches.
func (c *cluster) info(ctx context.Context, w io.Writer, agents string) error {
	cfg := rest.CopyConfig(c.config)
	cfg.QPS, cfg.Timeout = -1, infoLimit
	cfg.WarningHandler, cfg.WarningHandlerWithContext = rest.NoWarnings{}, nil
	cfg.UserAgent = "kconverge/" + toolVersion()
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return exitWith(exitUnreachable, err)
	}
	scope := "namespace " + strings.Join(c.namespaces, ", ")
	if c.all {
		scope = "all namespaces"
	}
	version := c.version
	if version == "" {
		version = "not told"
	}
	fmt.Fprintf(w, "cluster     %s at %s\nversion     %s\nscope       %s\n\n", collect.Plain(c.name), cfg.Host, version, scope)
	for _, r := range kube.Rights() {
		fmt.Fprintf(w, "%-24s %s\n", r.Resource.Resource, c.seen(ctx, client, r))
	}
	fmt.Fprintf(w, "\nservice proxy  %s\nagents         %s\n", serviceProxy(ctx, client), agentPods(ctx, client, agents))
	return nil
}

// seen tries to list and to watch a resource, in each namespace.
func (c *cluster) seen(ctx context.Context, client kubernetes.Interface, r kube.Right) string {
	if !r.Namespaced || c.all {
		return seenIn(ctx, client, r, "")
	}
	for _, ns := range c.namespaces {
		if s := seenIn(ctx, client, r, ns); s != seen && len(c.namespaces) > 1 {
			return "in " + ns + ": " + s
		} else if s != seen {
			return s
		}
	}
	return seen
}

// seen is said of what can be listed and watched.
const seen = "seen"

func seenIn(ctx context.Context, client kubernetes.Interface, r kube.Right, ns string) string {
	path := []string{"/apis", r.Resource.Group, r.Resource.Version}
	if r.Resource.Group == "" {
		path = []string{"/api", r.Resource.Version}
	}
	if ns != "" {
		path = append(path, "namespaces", ns)
	}
	path = append(path, r.Resource.Resource)
	ctx, cancel := context.WithTimeout(ctx, infoLimit)
	defer cancel()
	get := func() *rest.Request {
		return client.Discovery().RESTClient().Get().AbsPath(strings.Join(path, "/")).Param("limit", "1").MaxRetries(0)
	}
	if err := get().Do(ctx).Error(); err != nil {
		return refusal("list", err)
	}
	body, err := get().Param("watch", "true").Param("timeoutSeconds", "1").Stream(ctx)
	if err != nil {
		return refusal("watch", err)
	}
	body.Close()
	return seen
}

func refusal(verb string, err error) string {
	switch {
	case apierrors.IsForbidden(err):
		return "forbidden to " + verb + ": ask for the Roles that kconverge info --rbac prints"
	case apierrors.IsNotFound(err):
		return "not served"
	}
	return "cannot " + verb + ": " + collect.Plain(err.Error())
}

// proxies are DaemonSets of kube-system that program Services, by name.
var proxies = map[string]string{
	"kube-proxy": "kube-proxy", "cilium": "Cilium (it may replace kube-proxy)", "kube-router": "kube-router",
	"antrea-agent": "Antrea (it may replace kube-proxy)", "calico-node": "Calico (with eBPF it replaces kube-proxy)",
}

// serviceProxy says what programs Services, as far as the API tells.
func serviceProxy(ctx context.Context, client kubernetes.Interface) string {
	ctx, cancel := context.WithTimeout(ctx, infoLimit)
	defer cancel()
	sets, err := client.AppsV1().DaemonSets(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{})
	if err != nil {
		return "cannot tell: DaemonSets of kube-system: " + refusal("list", err)
	}
	var found []string
	isProxy := false
	for i := range sets.Items {
		if name, ok := proxies[sets.Items[i].Name]; ok {
			if sets.Items[i].Name == "kube-proxy" {
				isProxy, name = true, name+", "+proxyMode(ctx, client)
			}
			found = append(found, name)
		}
	}
	switch {
	case len(found) == 0:
		return "no DaemonSet of kube-system is a known one; kube-proxy may run outside the cluster, agents tell"
	case !isProxy:
		return "no kube-proxy DaemonSet: " + strings.Join(found, "; ") + ". kconverge reads kube-proxy's rules only"
	}
	return strings.Join(found, "; ")
}

// proxyMode reads the mode from kube-proxy's configuration, as kubeadm keeps it.
func proxyMode(ctx context.Context, client kubernetes.Interface) string {
	m, err := client.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(ctx, "kube-proxy", metav1.GetOptions{})
	if err != nil {
		return "mode not known (its ConfigMap: " + refusal("get", err) + ")"
	}
	for line := range strings.Lines(m.Data["config.conf"]) {
		if mode, ok := strings.CutPrefix(line, "mode:"); ok {
			if mode = strings.Trim(strings.TrimSpace(mode), `"`); mode != "" {
				return "mode " + collect.Plain(mode)
			}
			return "its default mode"
		}
	}
	return "mode not known"
}

// agentPods counts the agents and tries whether their logs may be read.
func agentPods(ctx context.Context, client kubernetes.Interface, namespace string) string {
	ctx, cancel := context.WithTimeout(ctx, infoLimit)
	defer cancel()
	pods, err := client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: nodelog.AgentLabel + "=" + nodelog.AgentName})
	switch {
	case err != nil:
		return "cannot tell: " + refusal("list", err)
	case len(pods.Items) == 0:
		return "none in namespace " + namespace + "; start them with: kconverge agent manifest | kubectl apply -f -"
	}
	text := fmt.Sprintf("%d in namespace %s", len(pods.Items), namespace)
	_, err = client.CoreV1().Pods(namespace).GetLogs(pods.Items[0].Name, &corev1.PodLogOptions{Container: nodelog.Container, TailLines: new(int64(1))}).Do(ctx).Raw()
	if err != nil && !errors.Is(err, context.Canceled) {
		text += "; their logs: " + refusal("get", err)
	}
	return text
}
