// Package reconcile runs the lab's EndpointSlice controller, the legacy
// Endpoints controller and the one that mirrors hand-made Endpoints, and tells
// each of their steps.
//
// What the slices should hold is decided by k8s.io/endpointslice, the very code
// of the real controller. Around it stands a loop of our own with the real
// one's queue, workers, retries and timing (k8s.io/kubernetes v1.37.2
// pkg/controller/endpointslice, endpoint and endpointslicemirroring), so that each
// step can be observed: queued, started, wrote or unchanged, conflict, retry,
// dropped.
//
// It may import collect and client-go; it knows nothing of the lab, the
// timeline or the screens.
//
// Start with reconcile.go (what runs), then loop.go (how a key travels);
// slices.go, endpoints.go and mirror.go are the controllers, mirror_plan.go says what
// a mirror holds, subsets.go is the layout of legacy Endpoints, writes.go counts
// what is written.
package reconcile
