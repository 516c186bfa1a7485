// Package desired says what ought to be: which endpoints a Service's
// EndpointSlices should publish, and which a node's rules should route to. It
// is pure: facts in, sets out, no clock, no client, no kernel.
//
// Both the model (engine/timeline), which compares it with what was observed,
// and the embedded rule sync (engine/rulesync), which programs it, use it.
//
// slices.go follows the EndpointSlice controller (k8s.io/endpointslice);
// rules.go follows kube-proxy (k8s.io/kubernetes/pkg/proxy).
package desired
