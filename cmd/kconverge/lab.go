package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/engine/lab"
	"github.com/kconverge/kconverge/engine/lab/apiserver"
	"github.com/kconverge/kconverge/engine/lab/controlplane"
	"github.com/kconverge/kconverge/engine/lab/faults"
	"github.com/kconverge/kconverge/engine/lab/traffic"
	"github.com/kconverge/kconverge/engine/live"
	"github.com/kconverge/kconverge/engine/rulesync"
	"github.com/kconverge/kconverge/ui"
)

type labFlags struct {
	nodes      int
	port       int
	kubeconfig string
	dataplane  string
	plane      string
	command    string
	limit      time.Duration
	seed       bool
	empty      bool
	faults     []string
	traffic    int
	scenario   string
	tour       bool
	control    bool
}

func newLab() *cobra.Command {
	var flags outputFlags
	var lf labFlags
	c := &cobra.Command{
		Use:   "lab",
		Short: "Run a whole small cluster in this process and watch it converge",
		Long: `lab runs an API server, controllers, a scheduler and nodes in this process. Each
node is a network namespace with real nftables rules; real connections go
through them. Nothing outside the lab's own namespaces is touched, and nothing
is left when it stops. Where the system refuses network namespaces the nodes and
their rules are in memory: everything converges as before, but no packets flow.

With --control-plane the API server, controllers and scheduler are Kubernetes' own
programs, which end with the lab; nodes, kubelets and rules are the lab's as ever.

With a screen it starts with a Deployment "web" and its Service. Use kubectl
from another terminal with the kubeconfig that the screen shows.

With --fault something goes wrong from the start, for instance --fault sync-delay=5s@node-2;
--fault help, or kconverge lab faults, lists what can.

With --scenario it plays a script, and checks what that expects: kconverge lab scenarios
lists those that there are. --tour is a five-minute talk that stops between chapters.`,
		Example: `  kconverge lab
  kconverge lab --headless --nodes 3 --run 'kubectl create deployment web --image=nginx --replicas=4 && kubectl expose deployment web --port=80' -o json`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return runLab(c, &flags, &lf) },
	}
	flags.registerScreen(c.Flags())
	fs := c.Flags()
	fs.IntVar(&lf.nodes, "nodes", 3, "number of nodes")
	fs.IntVar(&lf.port, "port", 0, "port of the API server on 127.0.0.1; 0 takes a free one")
	fs.StringVar(&lf.kubeconfig, "kubeconfig", "", "write the kubeconfig to `FILE` (default: a stable name in the user's runtime directory)")
	fs.StringVar(&lf.dataplane, "dataplane", string(rulesync.KubeProxy), "layout of the nodes' rules: kube-proxy (a chain for each Service) or flat (one map for all; a change writes a few elements)")
	fs.StringVar(&lf.plane, "control-plane", "", "run Kubernetes' own programs from `DIR` (etcd, kube-apiserver, kube-controller-manager, kube-scheduler; \"make cluster-bin\" builds them into testdata/cluster/bin) in the place of the lab's own API server and controllers")
	fs.StringVar(&lf.command, "run", "", "run a shell `COMMAND` with KUBECONFIG set, wait until everything has settled and converged, print the report and stop")
	fs.DurationVar(&lf.limit, "timeout", 5*time.Minute, "with --run: how long to wait for convergence after the command")
	fs.BoolVar(&lf.seed, "seed", false, "start with the Deployment and Service \"web\" (the default with a screen)")
	fs.BoolVar(&lf.empty, "empty", false, "start with nothing (the default without a screen)")
	fs.StringArrayVar(&lf.faults, "fault", nil, "set a fault, `NAME=VALUE` (may be repeated); help lists them")
	fs.IntVar(&lf.traffic, "traffic", 0, "open so many connections a second from each node to each Service port")
	fs.StringVar(&lf.scenario, "scenario", "", "play a scenario: the `NAME` of one of those that kconverge lab scenarios lists, or a file")
	fs.BoolVar(&lf.tour, "tour", false, "play the five-minute tour, which stops between its chapters for a key")
	fs.BoolVar(&lf.control, "control", false, "with --scenario: leave its cause out, so that what it expects should not be met")
	c.AddCommand(newLabFaults(), newLabFault(), newScenarios())
	return c
}

func (lf *labFlags) validate(f *outputFlags) error {
	switch {
	case lf.nodes < 1 || lf.nodes > 200:
		return exitf(exitUsage, "--nodes %d: choose 1 to 200", lf.nodes)
	case lf.port < 0 || lf.port > 65535:
		return exitf(exitUsage, "--port %d: choose 0 to 65535", lf.port)
	case lf.dataplane != string(rulesync.KubeProxy) && lf.dataplane != string(rulesync.Flat):
		return exitf(exitUsage, "--dataplane %q: choose %s or %s", lf.dataplane, rulesync.KubeProxy, rulesync.Flat)
	case lf.seed && lf.empty:
		return exitf(exitUsage, "--seed and --empty exclude each other")
	case lf.traffic < 0 || lf.traffic > traffic.MaxRate:
		return exitf(exitUsage, "--traffic %d: choose 0 to %d connections a second", lf.traffic, traffic.MaxRate)
	case lf.scenario != "" && lf.tour, lf.command != "" && (lf.scenario != "" || lf.tour):
		return exitf(exitUsage, "--scenario, --tour and --run exclude each other")
	case lf.control && lf.scenario == "":
		return exitf(exitUsage, "--control is for --scenario")
	}
	if lf.command != "" {
		f.headless = true
	}
	if err := validTimeout(lf.limit); err != nil {
		return err
	}
	return f.validate()
}

func runLab(c *cobra.Command, flags *outputFlags, lf *labFlags) error {
	if slices.Contains(lf.faults, "help") {
		explainFaults(c.OutOrStdout(), faults.Definitions())
		return nil
	}
	if err := lf.validate(flags); err != nil {
		return err
	}
	screen, err := flags.screen()
	if err != nil {
		return err
	}
	sh, err := lf.openShow(screen)
	if err != nil {
		return err
	}
	if sh != nil && !c.Flags().Changed("nodes") {
		lf.nodes = sh.Nodes
	}
	broken, err := parseFaults(lf.faults, lf.plane == "", lf.nodes)
	if err != nil {
		return err
	}
	logs, done, err := captureLogs()
	if err != nil {
		return exitWith(exitUsage, err)
	}
	defer done()
	spareMemory()
	ctx, stop := interruptible(c.Context())
	defer stop()

	title := "lab " + apiserver.KubernetesVersion
	var programs *controlplane.Programs
	if lf.plane != "" {
		if programs, err = controlplane.Find(ctx, lf.plane, apiserver.KubernetesVersion); err != nil {
			return exitWith(exitUsage, err)
		}
		title = "lab " + programs.Kubernetes + ", real programs"
	}
	file, err := claimKubeconfig(lf.kubeconfig)
	if err != nil {
		return exitWith(exitUsage, err)
	}
	defer file.release()
	var access labAccess
	cluster := lab.New(lab.Options{
		Nodes:      lf.nodes,
		Addr:       net.JoinHostPort("127.0.0.1", strconv.Itoa(lf.port)),
		Seed:       lf.seed || screen && !lf.empty && sh == nil,
		Traffic:    lf.traffic,
		Dataplane:  rulesync.Dataplane(lf.dataplane),
		Kubeconfig: access.take(file.write),
		Logs:       logs,
		Tool:       toolVersion(),
		Faults:     broken,

		ControlPlane: programs,
		Guard:        killOnDeath,
	})
	if err := cluster.Refused(); err != nil {
		fmt.Fprintf(c.ErrOrStderr(), "kconverge: %v. Until then the nodes and their rules are in memory, and no packets flow.\n", err)
	}
	if err := cluster.NoIPv6(); err != nil {
		fmt.Fprintf(c.ErrOrStderr(), "kconverge: %v. Nodes, pods and Services have IPv4 alone.\n", err)
	}
	kubectl := "kubectl --kubeconfig " + file.path
	o := observation{
		flags: flags, session: cluster.Session(), sources: []collect.Source{cluster}, screen: screen, stdout: c.OutOrStdout(),
		keep: keep(live.Scope{}),
		ui: screenOptions(flags, ui.Options{
			Title: title, Namespace: "default", Focus: lab.SeedService, Actions: cluster, Faults: labFaults{cluster},
			Hint: kubectl + " scale deployment/web --replicas=7",
		}),
	}
	if lf.empty {
		o.ui.Focus = ""
	}
	switch {
	case sh != nil:
		sh.attach(&o, cluster, &access, c.ErrOrStderr())
	case lf.command != "":
		cmd := command{args: []string{"sh", "-c", lf.command}, env: []string{"KUBECONFIG=" + file.path}, out: c.ErrOrStderr(), bound: true}
		o.during = func(ctx context.Context, rt *live.Runtime) error {
			if err := cluster.WaitReady(ctx); err != nil {
				return exitWith(exitUnreachable, err)
			}
			return runAndSettle(ctx, rt, cmd, live.Scope{}, askAll(o.sources), lf.limit)
		}
	case !screen:
		announce(ctx, c.ErrOrStderr(), cluster, kubectl)
	}
	err = o.run(ctx)
	if sh != nil && screen && err == nil {
		return sh.after(c.OutOrStdout())
	}
	return err
}

// announce tells on standard error when a headless lab can be used, and how.
func announce(ctx context.Context, w io.Writer, cluster *lab.Lab, kubectl string) {
	go func() {
		if cluster.WaitReady(ctx) == nil {
			fmt.Fprintf(w, "The lab is ready. In another terminal: %s get nodes\n", kubectl)
		}
	}()
}
