// Package apiserver runs a real Kubernetes API server inside this process:
// the k8s.io/apiserver generic server over an embedded etcd, with the
// resources a Service's way to the nodes needs. Ordinary kubectl and
// client-go work against it.
//
// It has no controllers but one: a namespace being deleted is emptied here,
// because nothing else would finish it. Everything else (workloads, garbage
// collection, endpoints, kubelets) is a client like any other.
//
// Where to start: Start in server.go. resource.go says what a resource is
// made of; each resource has its own file with its columns, defaults and
// rules. Rules taken from Kubernetes name the file of k8s.io/kubernetes
// v1.37.2 they were read from.
//
// It may import k8s.io/apiserver, etcd, client-go and apimachinery, and
// nothing of this project but its own folders,
// engine/lab/pki and engine/lab/scratch.
package apiserver
