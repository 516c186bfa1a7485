// Package lab is a whole small cluster in one process: it wires an API server
// (apiserver), the workload controllers and scheduler (workloads), a kubelet for
// each node (kubelet), nodes that are network namespaces (nodes), the
// EndpointSlice controllers (engine/reconcile) and a rule sync for each node
// (engine/rulesync), and observes them through the same collectors as any other
// cluster (collect/kube, collect/noderules).
//
//	           kubectl ──▶ apiserver ◀── workloads, scheduler
//	                        │  ▲  ▲
//	          ┌─────────────┘  │  └── kubelet ── Sandbox ──┐
//	          ▼                ▼                           ▼
//	     rulesync ──nft──▶ node namespace ◀── packets ── listeners
//	                           │
//	collect/kube           collect/noderules
//	      └──────▶ collect.Sink ◀──┘
//
// apiserver, workloads and engine/reconcile are the control plane (plane.go). In
// their place there can be Kubernetes' own programs (controlplane, plane_real.go):
// the nodes, their kubelets and rule syncs and what observes are the same, but what
// the controllers do inside is not seen then.
//
// Where network namespaces are refused, or there are none, nodes and rules are in
// memory (ground.go): everything converges and is observed in the same way, but no
// packets flow.
//
// A Lab is a collect.Source: Run starts everything, emits into the sink, and
// returns when everything has stopped and nothing is left. Nothing here sees
// the model or a screen.
//
// Start with lab.go; run.go has the order of start and stop, plane.go what makes a
// cluster of the nodes, seed.go what it begins with, actions.go what the screen may ask for.
package lab
