package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/kconverge/kconverge/engine/cluster"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		os.Exit(1)
	}
}

func run() (err error) {
	bin := flag.String("bin", "testdata/cluster/bin", "the directory of Kubernetes' programs")
	agent := flag.String("agent", "bin/kconverge-agent", "the node agent's path")
	mode := flag.String("mode", cluster.NFTables, "kube-proxy's mode: "+strings.Join(cluster.Modes(), ", ")+"; several with commas between, for the nodes by turns")
	nodes := flag.Int("nodes", 3, "the number of nodes whose kubelets are simulated")
	real := flag.Bool("real", false, "one more node that is real: kubelet, containerd, and programs in its pods")
	pod := flag.String("pod", "bin/cluster-pod", "with -real: the path of engine/cluster/pod's program")
	port := flag.Int("port", 0, "the API server's port on 127.0.0.1; 0 takes a free one")
	end := flag.Bool("down", false, "end the cluster that runs, and wait until all of it is gone")
	lock := flag.String("lock", "/run/kconverge-cluster.json", "the file that tells of the cluster that runs")
	flag.Parse()
	if flag.NArg() > 0 {
		return fmt.Errorf("%q is no flag: -help lists them", flag.Arg(0))
	}
	if *nodes < 1 {
		return fmt.Errorf("-nodes %d: at least 1", *nodes)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	if os.Geteuid() != 0 {
		return fmt.Errorf("it makes network namespaces for kube-proxies: run it as root (the lab needs no root: make lab)")
	}
	if *end {
		return down(*lock, os.Stdout)
	}
	held, left, err := hold(*lock)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, held.release()) }()
	if left != "" {
		fmt.Println("removed what a cluster that was killed had left:", left)
	}
	absolute, err := filepath.Abs(*agent)
	if err != nil {
		return err
	}
	if _, err := os.Stat(absolute); err != nil {
		return fmt.Errorf("the agent: %w: `make build` builds it", err)
	}
	var node *cluster.Real
	if *real {
		node = &cluster.Real{Pause: *pod, Images: []cluster.Image{
			{Name: webImage, Program: *pod, Args: []string{"serve"}},
			{Name: agentImage, Program: absolute},
		}}
	}
	dir, err := os.MkdirTemp("", dirPrefix)
	if err != nil {
		return err
	}
	if err := held.say(record{PID: os.Getpid(), Dir: dir, Kubeconfig: cluster.KubeconfigIn(dir), Since: time.Now()}); err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(dir, "programs.log"))
	if err != nil {
		return err
	}
	defer log.Close()
	fmt.Println("starting etcd, the control plane, kwok and", *nodes, "kube-proxies …")
	if *real {
		fmt.Println("and containerd, a kubelet and a kube-proxy of", cluster.RealName, "…")
	}
	c, err := cluster.Start(ctx, cluster.Options{
		Bin: *bin, Agent: absolute, Mode: *mode, Nodes: *nodes, Real: node, Port: *port, Dir: dir, Log: &oneAtATime{to: log},
	})
	switch {
	case err != nil && ctx.Err() != nil: // told to end
		return os.RemoveAll(dir)
	case err != nil && !printed(log):
		return errors.Join(err, os.RemoveAll(dir))
	case err != nil:
		return fmt.Errorf("%w\nwhat the programs printed is in %s", err, log.Name())
	}
	defer func() {
		if stopErr := c.Stop(); err == nil {
			err = stopErr
		}
		if err == nil {
			err = os.RemoveAll(dir)
		}
	}()
	explain(c, *bin, *mode)
	select {
	case <-ctx.Done():
		return nil
	case <-c.Done():
		return fmt.Errorf("%w\nwhat the programs printed is in %s", c.Err(), log.Name())
	}
}

// printed reports that a program has printed something.
func printed(log *os.File) bool {
	fi, err := log.Stat()
	return err != nil || fi.Size() > 0
}

// shows is what prints the rules of a kube-proxy's mode.
var shows = map[string]string{
	cluster.NFTables: "nft list ruleset", cluster.NFTables134: "nft list ruleset",
	cluster.IPTables: "xtables-nft-multi iptables-save", cluster.IPTablesLegacy: "xtables-legacy-multi iptables-save",
}

// Images of the real node.
const (
	webImage   = "localhost/web:1"
	agentImage = "localhost/kconverge-agent:1"
)

// explain says how to use the cluster.
func explain(c *cluster.Cluster, bin, mode string) {
	fmt.Printf("\nA cluster of %d nodes, kube-proxy in %s mode. In another terminal, as root:\n\n", len(c.Nodes()), mode)
	fmt.Printf("  export KUBECONFIG=%s\n", c.Kubeconfig())
	real := c.Real() != nil
	if real {
		fmt.Printf("  bin/kconverge agent manifest --image %s --heartbeat 1s | %s/kubectl apply -f -\n", agentImage, bin)
	}
	fmt.Printf("  bin/kconverge watch -A")
	if real {
		fmt.Printf(" --agents")
	}
	for _, n := range c.Simulated() {
		fmt.Printf(" --node-log %s=%s", n.Name(), c.Lines(n.Name()))
	}
	fmt.Printf("\n\nand in a third one, with the same KUBECONFIG:\n\n")
	fmt.Printf("  %s/kubectl create deployment web --image=nginx --replicas=4\n", bin)
	fmt.Printf("  %s/kubectl expose deployment web --port=80 --target-port=8080\n", bin)
	if real {
		fmt.Printf("\nThat is simulated. Pods of %s whose programs run and answer:\n\n", cluster.RealName)
		fmt.Printf("  %s/kubectl apply -f engine/cluster/up/real.yaml\n", bin)
		fmt.Printf("  nsenter --net=/proc/%d/fd/%d curl http://$(%s/kubectl get svc real -o jsonpath={.spec.clusterIP})\n", os.Getpid(), c.Nodes()[0].NetNS(), bin)
	}
	n := c.Nodes()[0]
	fmt.Printf("\n%s's own rules:\n\n  nsenter --net=/proc/%d/fd/%d %s\n", n.Name(), os.Getpid(), n.NetNS(), shows[c.ModeOf(n.Name())])
	fmt.Println("\nCtrl-C ends it, or `make cluster-down` in another terminal; nothing is left.")
}

// oneAtATime lets several programs write to one log.
type oneAtATime struct {
	mu sync.Mutex
	to io.Writer
}

// Write implements io.Writer.
func (o *oneAtATime) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.to.Write(p)
}
