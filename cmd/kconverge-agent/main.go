package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"

	"github.com/kconverge/kconverge/collect/agent"
)

// version is set by the linker for releases.
var version = "devel"

// Exit codes.
const (
	exitOK    = 0
	exitNot   = 1 // the rules cannot be read, or nobody reads the lines
	exitUsage = 2
)

// memoryLimit is where the garbage collector begins to work harder, in bytes.
const memoryLimit = 24 << 20

func main() { os.Exit(run()) }

func run() int {
	if os.Getenv("GOMAXPROCS") == "" {
		// What little there is to do needs no second processor, and with more of
		// them each wake-up sets others looking for work.
		runtime.GOMAXPROCS(1)
	}
	fs := flag.NewFlagSet("kconverge-agent", flag.ContinueOnError)
	o := agent.Options{Version: version}
	fs.StringVar(&o.Node, "node", "", "the node's name (default: $NODE_NAME, else the host's name)")
	fs.DurationVar(&o.Heartbeat, "heartbeat", agent.DefaultHeartbeat, "how often to say that nothing is missing")
	fs.DurationVar(&o.Keyframe, "keyframe", agent.DefaultKeyframe, "how often to say everything there is")
	fs.StringVar(&o.ProxyMetrics, "proxy-metrics", agent.DefaultProxyMetrics, "where the node's kube-proxy gives its metrics; empty asks nobody")
	fs.StringVar(&o.ProxyHealth, "proxy-health", agent.DefaultProxyHealth, "where the node's kube-proxy gives its health")
	show := fs.Bool("version", false, "print the version and stop")
	fs.Usage = func() {
		fmt.Fprint(fs.Output(), `kconverge-agent reads the kernel rules of this node and prints JSON lines to
standard output. It needs root or CAP_NET_ADMIN in the network namespace that
kube-proxy works in.

  kconverge-agent --node node-1 > FILE
  kconverge watch --node-log node-1=FILE

`)
		fs.PrintDefaults()
	}
	switch err := fs.Parse(os.Args[1:]); {
	case errors.Is(err, flag.ErrHelp):
		return exitOK
	case err != nil:
		return exitUsage
	case fs.NArg() > 0:
		fmt.Fprintf(os.Stderr, "kconverge-agent: unexpected argument %q; see --help\n", fs.Arg(0))
		return exitUsage
	case o.Heartbeat <= 0 || o.Keyframe <= 0:
		fmt.Fprintln(os.Stderr, "kconverge-agent: --heartbeat and --keyframe must be more than 0")
		return exitUsage
	}
	if *show {
		fmt.Println("kconverge-agent", version)
		return exitOK
	}
	host, _ := os.Hostname()
	o.Node = cmp.Or(o.Node, os.Getenv("NODE_NAME"), host)

	debug.SetMemoryLimit(memoryLimit)
	// Without this a closed pipe would end the process before it can say so.
	signal.Ignore(syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	if err := agent.Run(ctx, o, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "kconverge-agent:", err)
		return exitNot
	}
	return exitOK
}
