package cluster

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/kconverge/kconverge/engine/lab/nodes"
	"github.com/kconverge/kconverge/engine/lab/process"
)

// Names of the programs beside those of the control plane.
const (
	kubeProxy = "kube-proxy"
	kwok      = "kwok"
)

// startKwok plays the kubelets of the simulated nodes: their leases, and their pods by
// stages.yaml. Its own server is of no use here.
func (c *Cluster) startKwok() error {
	_, err := c.run(process.Command{
		Name: kwok, Path: filepath.Join(c.o.Bin, kwok),
		Args: []string{
			"--kubeconfig=" + c.Kubeconfig(), "--config=" + c.path("stages.yaml"),
			"--manage-nodes-with-annotation-selector=" + simulated, "--node-lease-duration-seconds=40", "--server-address=127.0.0.1:0", "--v=WARN",
		},
	})
	return err
}

// StartProxy starts a node's kube-proxy, in the node's namespace. One that still
// runs must have been stopped before.
func (c *Cluster) StartProxy(node string) error {
	n := c.net.Node(node)
	if n == nil {
		return fmt.Errorf("there is no node %s", node)
	}
	m := modes[c.ModeOf(node)]
	p, err := c.run(inside(n, process.Command{
		Name: kubeProxy + " of " + node, Path: filepath.Join(c.o.Bin, m.program),
		Args: []string{"--config=" + c.configs[node]},
		Env:  c.environment(m),
	}))
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.proxies[node] = p
	return nil
}

// startAgent starts the node's agent, which appends its lines to a file. What it
// says to people goes to the log.
func (c *Cluster) startAgent(n *nodes.Node) error {
	file := c.Lines(n.Name())
	if err := os.WriteFile(file, nil, 0o600); err != nil { // so that it can be followed at once
		return err
	}
	_, err := c.run(inside(n, process.Command{
		Name: "kconverge-agent of " + n.Name(), Path: "/bin/sh",
		Args: append([]string{"-c", `exec "$@" >>"$LINES_OF_AGENT"`, "sh", c.o.Agent, "--node", n.Name()}, c.o.AgentArgs...),
		Env:  append(os.Environ(), "LINES_OF_AGENT="+file),
	}))
	return err
}

// inside lets a command run in a node's network namespace.
func inside(n *nodes.Node, c process.Command) process.Command {
	c.Args = append([]string{"--net=" + netPath(n), c.Path}, c.Args...)
	c.Path = "nsenter"
	return c
}

// launch starts a program whose end is somebody else's business.
func (c *Cluster) launch(cmd process.Command) (*process.Process, error) {
	cmd.Log = c.o.Log
	return process.Start(cmd)
}

// run starts a program that Stop ends.
func (c *Cluster) run(cmd process.Command) (*process.Process, error) {
	p, err := c.launch(cmd)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running = append(c.running, p)
	return p, nil
}
