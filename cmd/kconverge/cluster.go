package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/collect/kube"
	"github.com/kconverge/kconverge/engine/live"
)

// clusterFlags choose a cluster and what to observe in it: kubectl's own flags.
type clusterFlags struct {
	kubectl       *genericclioptions.ConfigFlags
	allNamespaces bool
	agents        agentFlags
}

func newClusterFlags(fs *pflag.FlagSet) *clusterFlags {
	f := newBareClusterFlags(fs)
	f.agents.register(fs)
	return f
}

// newBareClusterFlags are those without the agents'.
func newBareClusterFlags(fs *pflag.FlagSet) *clusterFlags {
	f := &clusterFlags{kubectl: genericclioptions.NewConfigFlags(true)}
	f.kubectl.AddFlags(fs)
	fs.Lookup("namespace").Usage = "the namespaces to observe, with commas between; the context's when not given"
	fs.BoolVarP(&f.allNamespaces, "all-namespaces", "A", false, "observe every namespace")
	return f
}

// cluster is a chosen cluster.
type cluster struct {
	config     *rest.Config
	name       string // context or server
	namespaces []string
	all        bool
	version    string
}

// reach asks the cluster's API server for the version.
func (c *cluster) reach(ctx context.Context) (err error) {
	c.version, err = kube.Reach(ctx, c.config)
	return exitWith(exitUnreachable, err)
}

// run is what every command on a cluster does: it captures the logs, chooses the
// cluster and the Services that args name, and observes them as finish completes
// the observation. The screen draws first and connects after, so that what cannot
// be reached is said on it and tried again; without one that ends the command.
func (f *clusterFlags) run(c *cobra.Command, flags *outputFlags, args []string, vouch time.Duration, finish func(*cluster, *observation)) error {
	if err := errors.Join(flags.validate(), f.agents.validate()); err != nil {
		return err
	}
	screen, err := flags.screen()
	if err != nil {
		return err
	}
	_, done, err := captureLogs()
	if err != nil {
		return exitWith(exitUsage, err)
	}
	defer done()
	ctx, stop := interruptible(c.Context())
	defer stop()
	cluster, err := f.choose()
	if err != nil {
		return err
	}
	scope, err := cluster.scope(args)
	if err != nil {
		return err
	}
	if !screen {
		if err := cluster.reach(ctx); err != nil {
			return err
		}
	}
	session, src, err := cluster.observe(vouch)
	if err != nil {
		return exitWith(exitUnreachable, err)
	}
	sources, rules, err := f.agents.sources(cluster, src)
	if err != nil {
		return exitWith(exitUnreachable, err)
	}
	session.Rules = rules
	o := observation{
		flags: flags, session: session, sources: sources, scope: scope, keep: keep(scope),
		screen: screen, stdout: c.OutOrStdout(),
	}
	finish(cluster, &o)
	if !screen {
		return cluster.observeExisting(ctx, &o, c.ErrOrStderr())
	}
	return o.run(ctx)
}

// choose loads the configuration; it talks to nobody.
func (f *clusterFlags) choose() (*cluster, error) {
	if err := f.files(); err != nil {
		return nil, exitWith(exitUsage, err)
	}
	loader := f.kubectl.ToRawKubeConfigLoader()
	c := &cluster{all: f.allNamespaces}
	var err error
	if c.namespaces, err = f.namespaces(); err != nil {
		return nil, err
	}
	if c.config, err = f.kubectl.ToRESTConfig(); err != nil {
		return nil, exitf(exitUnreachable, "no cluster is configured: %w; choose one with --kubeconfig or --context, or start one with: kconverge lab", err)
	}
	if none, err := unconfigured(loader); err == nil && none && *f.kubectl.APIServer == "" {
		where := ""
		if file := os.Getenv("KUBECONFIG"); file != "" {
			where = " in KUBECONFIG=" + file
		}
		return nil, exitf(exitUnreachable, "no cluster is configured%s: choose one with --kubeconfig or --context, or start one with: kconverge lab", where)
	}
	c.name = c.config.Host
	if raw, err := loader.RawConfig(); err == nil && raw.CurrentContext != "" {
		c.name = raw.CurrentContext
	}
	if name := *f.kubectl.Context; name != "" {
		c.name = name
	}
	return c, nil
}

// namespaces are those of --namespace, a list with commas between, or else the
// context's.
func (f *clusterFlags) namespaces() ([]string, error) {
	list, _, err := f.kubectl.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, exitWith(exitUsage, fmt.Errorf("kubeconfig: %w", err))
	}
	out := strings.Split(list, ",")
	for _, ns := range out {
		if bad := validation.IsDNS1123Label(ns); len(bad) > 0 {
			return nil, exitf(exitUsage, "namespace %q: %s", ns, bad[0])
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// files refuses a kubeconfig that is a pipe: it is read several times, and opening
// one that nobody writes to would wait for ever.
func (f *clusterFlags) files() error {
	paths := filepath.SplitList(os.Getenv(clientcmd.RecommendedConfigPathEnvVar))
	if p := *f.kubectl.KubeConfig; p != "" {
		paths = []string{p}
	}
	for _, p := range paths {
		if fi, err := os.Stat(p); err == nil && fi.Mode()&(os.ModeNamedPipe|os.ModeSocket) != 0 {
			return fmt.Errorf("kubeconfig: %s is a pipe and would be read several times: name a file", p)
		}
	}
	return nil
}

// unconfigured tells that there is no kubeconfig at all, and no pod to take one
// from: client-go would fall back to localhost:8080.
func unconfigured(loader clientcmd.ClientConfig) (bool, error) {
	raw, err := loader.RawConfig()
	if err != nil {
		return false, err
	}
	_, err = rest.InClusterConfig()
	return len(raw.Clusters) == 0 && err != nil, nil
}

// needed are the watches whose word counts for the watermark.
var needed = []collect.SourceID{collect.SourcePods, collect.SourceServices, collect.SourceEndpointSlices, collect.SourceNodes}

// observe gives the sources and the session of the cluster. vouch is how often
// a silent watch is checked.
func (c *cluster) observe(vouch time.Duration) (collect.Session, *kube.Source, error) {
	s := collect.Session{
		Kind: "cluster", Name: c.name, Version: c.version, Tool: toolVersion(), Rules: "not read",
		Needs: needed, NodesExpected: true,
	}
	if !c.all {
		s.Namespaces = c.namespaces
	}
	src, err := kube.New(kube.Options{
		Config: c.config, Namespaces: s.Namespaces, Clock: collect.SystemClock{}, VouchEvery: vouch,
		UserAgent: "kconverge/" + toolVersion(),
	})
	return s, src, err
}

// scope turns arguments (svc/web, service/web, web, svc/web.shop) into a Scope.
func (c *cluster) scope(args []string) (live.Scope, error) {
	s := live.Scope{}
	if !c.all {
		s.Namespaces = c.namespaces
	}
	for _, a := range args {
		name, err := serviceName(a)
		if err != nil {
			return s, err
		}
		name, ns, ok := strings.Cut(name, ".") // no name of a Service has a dot
		switch {
		case !ok && (c.all || len(c.namespaces) > 1):
			return s, exitf(exitUsage, "%s: say of which namespace: svc/%s.NAMESPACE", a, name)
		case !ok:
			ns = c.namespaces[0]
		case !c.all && !slices.Contains(c.namespaces, ns):
			return s, exitf(exitUsage, "%s: namespace %q is not observed: name it with -n", a, ns)
		}
		s.Services = append(s.Services, ns+"/"+name)
	}
	return s, nil
}

func serviceName(arg string) (string, error) {
	kind, name, ok := strings.Cut(arg, "/")
	if !ok {
		kind, name = "svc", arg
	}
	switch strings.ToLower(kind) {
	case "svc", "service", "services":
	default:
		return "", exitf(exitUsage, "%s: only Services can be watched, as svc/NAME", arg)
	}
	if name == "" || strings.Contains(name, "/") {
		return "", exitf(exitUsage, "%s: name a Service as svc/NAME", arg)
	}
	return name, nil
}

// askAll makes every source that can vouch do so, at most every 300 ms.
func askAll(sources []collect.Source) func() {
	var mu sync.Mutex
	var last time.Time
	return func() {
		mu.Lock()
		defer mu.Unlock()
		if time.Since(last) < 300*time.Millisecond {
			return
		}
		last = time.Now()
		for _, s := range sources {
			if v, ok := s.(collect.Voucher); ok {
				v.Vouch()
			}
		}
	}
}
