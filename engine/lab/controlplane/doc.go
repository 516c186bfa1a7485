// Package controlplane runs a real Kubernetes control plane from its own programs:
// etcd, kube-apiserver, kube-controller-manager and kube-scheduler, on this
// machine's loopback address only and with all their files in a directory that
// leaves nothing behind.
//
//	etcd ◀─unix socket─ kube-apiserver ◀─TLS, client certificates─ kube-controller-manager
//	                        ▲    │                                 kube-scheduler
//	          whoever has the    └─unix socket─▶ nobody: what would be asked of a
//	          kubeconfig                         node is refused in this process
//
// It knows nothing of nodes, Services or screens: whoever starts one brings the
// nodes. It may import client-go, apimachinery, engine/lab/pki, engine/lab/process
// and engine/lab/scratch.
//
// Start with controlplane.go: the order of start and stop. programs.go finds the
// programs and their versions, arguments.go has their command lines, files.go what
// they read, ports.go keeps their ports.
package controlplane
