package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/collect/kube"
	"github.com/kconverge/kconverge/collect/nodelog"
	"github.com/kconverge/kconverge/engine/lab/apiserver"
	"github.com/kconverge/kconverge/engine/lanes"
)

// agentFlags say where the rules of a cluster's nodes are read.
type agentFlags struct {
	nodeLogs  []string
	follow    bool
	asked     func() bool // --agents was given
	namespace string
	since     time.Duration
}

func (f *agentFlags) register(fs *pflag.FlagSet) {
	fs.StringArrayVar(&f.nodeLogs, "node-log", nil, "read the rules of a node from what kconverge-agent prints, as `NODE=FILE` (or a pipe); for several nodes give it several times")
	fs.BoolVar(&f.follow, "agents", true, "follow the logs of the cluster's agents (see: kconverge agent manifest); with --node-log only when it is given, for the other nodes")
	f.asked = func() bool { return fs.Changed("agents") }
	fs.StringVar(&f.namespace, "agents-namespace", nodelog.DefaultNamespace, "the namespace in which the agents run")
	fs.DurationVar(&f.since, "since", nodelog.DefaultSince, "how far back to read the agents' logs")
}

func (f *agentFlags) validate() error {
	if f.since <= 0 {
		return exitf(exitUsage, "--since %s: must be more than nothing, for instance 10m", f.since)
	}
	_, err := f.files()
	return err
}

// nodeFile is an agent's lines in a file.
type nodeFile struct{ node, path string }

func (f *agentFlags) files() ([]nodeFile, error) {
	var out []nodeFile
	seen := map[string]bool{}
	for _, arg := range f.nodeLogs {
		node, path, ok := strings.Cut(arg, "=")
		switch {
		case !ok || node == "" || path == "":
			return nil, exitf(exitUsage, "--node-log %q: give it as NODE=FILE", arg)
		case seen[node]:
			return nil, exitf(exitUsage, "--node-log %s: the node has two logs", node)
		}
		seen[node] = true
		out = append(out, nodeFile{node, path})
	}
	return out, nil
}

// sources adds to the watch of a cluster whatever reads its nodes' rules, and
// says for the session's head what that is.
func (f *agentFlags) sources(c *cluster, watch *kube.Source) (out []collect.Source, rules string, err error) {
	files, err := f.files()
	if err != nil {
		return nil, "", err
	}
	causes := nodelog.NewCauses()
	out, rules = []collect.Source{overheard{watch, causes}}, "not read"
	var elsewhere []string
	if len(files) > 0 {
		rules = fmt.Sprintf("agents' lines (%s)", lanes.Plural(len(files), "file"))
		for _, x := range files {
			out = append(out, nodelog.NewFile(nodelog.FileOptions{Node: x.node, Path: x.path, Causes: causes}))
			elsewhere = append(elsewhere, x.node)
		}
	}
	if !f.follow || len(files) > 0 && !f.asked() {
		return out, rules, nil
	}
	advice := ""
	if c.name == apiserver.ContextName {
		advice = "a lab runs none: its own screen shows the rules, and kconverge lab --run COMMAND judges them"
	}
	follower, err := nodelog.NewFollower(nodelog.Options{
		Advice: advice,
		Config: c.config, Namespace: f.namespace, Since: f.since, Elsewhere: elsewhere, Causes: causes, UserAgent: "kconverge/" + toolVersion(),
	})
	if err != nil {
		return nil, "", err
	}
	if followed := "agents in namespace " + f.namespace; len(files) > 0 {
		rules += " and " + followed
	} else {
		rules = followed
	}
	return append(out, follower), rules, nil
}

// overheard is the watch of a cluster to which the agents' readers listen, for
// the causes of what happens on the nodes.
type overheard struct {
	*kube.Source
	by collect.Sink
}

// Run implements collect.Source.
func (o overheard) Run(ctx context.Context, sink collect.Sink) error {
	return o.Source.Run(ctx, collect.Multi{sink, o.by})
}
