// Package nodes makes the lab's nodes: one network namespace for each, with
// real routes between them and a real listener behind every pod address, so
// that a connection from inside a node to a ClusterIP goes through that node's
// kernel rules and ends at a pod that answers with its UID.
//
// Nothing is left on the host. A namespace is held by a file descriptor only;
// no name under /run/netns, no rule, route or setting outside the namespaces.
// When the process ends, however it ends, the kernel removes them.
//
// Where this is refused (Allowed), StartInMemory makes nodes without a network:
// pods have addresses and answer their kubelet's probes, and nothing else does.
//
// The package may import collect, golang.org/x/sys and
// github.com/vishvananda/netlink; it knows nothing of Kubernetes. Start with
// options.go, then cluster_linux.go and memory.go; thread_linux.go makes a
// namespace, collect/netns enters it, network_linux.go says what it is given.
package nodes
