// Package kubelet stands in for the kubelet of one node: it registers the Node,
// sends heartbeats and runs the pods bound to it, with the moments in between
// that matter for a Service: image pull, init containers, start, a program that
// listens some time after its container started, probes that are really executed
// over the node's network, restarts with back-off, and graceful termination.
//
// No image is run: a container is a server until it is told to stop, or does what
// its command line says where that can be followed (sleep, exit, true, false, see
// program.go), so that pods can complete, fail and crash in a loop.
//
// What it writes, and in which order, is what the kubelet of Kubernetes 1.37
// writes (k8s.io/kubernetes pkg/kubelet/{status,prober,kubelet_pods.go}). In
// particular a terminating pod is probed until its containers have ended, and
// its terminal phase is written before the object is deleted.
//
// It reaches the node's network only through the Sandbox interface, and the API
// server only through client-go; beside these it imports apimachinery, k8s.io/api,
// klog and k8s.io/utils. Many kubelets share one pod informer, see Shared: a node
// costs one goroutine and one Lease write per heartbeat, a pod one goroutine and
// one more for each probe.
//
// Not there: gRPC probes and exec probes of other commands, sidecars among the
// init containers, postStart hooks, volumes, resources. A server told to stop
// exits with 0 whatever its image would do.
//
// Start with kubelet.go, then pod.go, the life of one pod, and restart.go, the
// way of one container from its start to its end and its next start.
package kubelet
