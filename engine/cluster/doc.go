// Package cluster runs a real Kubernetes cluster on one machine, for tests and for
// trying kconverge on what is not its own lab:
//
//	etcd, kube-apiserver, kube-controller-manager, kube-scheduler   this machine's loopback
//	kwok                                                            plays every kubelet
//	node-1: a network namespace with its own kube-proxy, and kconverge-agent
//	node-2, node-3: the same
//
// The pods are kwok's: they have addresses and become ready and go, but no program
// runs in them and nothing answers. Everything else is Kubernetes' own, built by
// testdata/cluster. kube-proxy writes into the kernel of its node's namespace only;
// nodes may have kube-proxies of different modes and versions. Nodes, pods and
// Services have addresses of both families where the kernel has IPv6, but for a cluster
// with a real node. Rights are
// RBAC's: the components have their own, and an audit log tells what chosen users ask.
//
// One more node can be real (Options.Real):
//
//	real-1: a network namespace with kube-proxy, containerd and a kubelet; its pods are
//	        on a bridge of CNI, run programs and answer; the agent is a DaemonSet's
//
// Its programs stand on a ground: namespaces of mounts and processes, in which /run,
// /var/lib and /var/log are directories below Options.Dir and the settings of the
// machine that a kubelet changes are files, and a cgroup of its own. All that ends with
// the first process of the namespaces. Images are static programs that were built here; nothing
// is pulled. It needs runc, the CNI plugins bridge, host-local and loopback, and
// unshare and nsenter of util-linux.
//
// It may import engine/lab/controlplane, engine/lab/nodes, engine/lab/process and
// client-go, and nothing that observes: what watches it sees a kubeconfig and the
// agents' lines. It needs root.
//
// Start with cluster.go: what is started in which order. programs.go has the
// programs' command lines, modes.go what kube-proxies can be, files.go what all of
// them read, audit.go the API server's audit log, relay.go how a node reaches the API
// server. real.go starts the real node, realfiles.go has what its programs read,
// ground.go what they stand on, image.go makes images. pod/ is the program in its
// pods, up/ the one behind `make cluster` and `make cluster-down`. The tests
// (`make e2e`) are the end-to-end ones: what kconverge says against what nft and
// iptables-save print, and on the real node against what the kubelet says; and what
// viewers ask of the API server.
package cluster
