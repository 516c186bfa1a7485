// Package workloads holds the controllers that turn an API server into a
// cluster: Deployment, ReplicaSet, StatefulSet, DaemonSet, Job, a scheduler, the
// node lifecycle with its evictions, a garbage collector for ownerReferences
// and one for the pods of deleted nodes. They work over client-go against any API
// server and know nothing of the lab around them.
//
// The rules (how many pods of which revision at which moment, what is deleted
// first, which conditions and Events are written) are those of Kubernetes 1.37
// (k8s.io/kubernetes pkg/controller/{deployment,replicaset,statefulset,daemon,job,
// nodelifecycle,tainteviction,podgc,garbagecollector}),
// so that kubectl's rollout, scale and delete commands behave as on a real
// cluster. The scheduler is a stand-in: readiness, taints, node selector and
// pod capacity, then the node with the fewest pods.
//
// Everything is driven by informer events through rate limited queues; nothing
// polls. The package may import client-go, apimachinery, k8s.io/api, klog and
// k8s.io/utils only.
//
// Start with workloads.go (what runs and how it stops), then queue.go, then one
// controller: deployment.go, replicaset.go, statefulset.go, daemonset.go, job.go,
// nodelifecycle.go, scheduler.go, gc.go or podgc.go.
package workloads
