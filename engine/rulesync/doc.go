// Package rulesync keeps one node's kernel rules in step with Services and
// EndpointSlices, as kube-proxy does: engine/desired says what the node should
// hold, this package decides when to write it and writes it.
//
// Timing, coalescing and retries follow kube-proxy 1.37 (runner.go, syncer.go);
// so does the first layout of the rules (layout_linux.go, setup_linux.go),
// exactly enough that whatever reads kube-proxy's rules reads these. The second
// one, flat (flatlayout_linux.go, flatsetup_linux.go, flat_linux.go, place.go),
// changes a few map elements where the first writes a chain anew. Every step is
// emitted as a collect.SyncStep. Memory (memory.go, routed.go) is a Table without a
// kernel, which tells what it routes by itself.
//
// It may import collect, collect/kube (the converters), engine/desired,
// client-go and google/nftables; it knows nothing of the lab. Start with
// syncer.go; ports.go turns wanted sets into what a Table is told, and Table in
// table.go is the boundary behind which the kernel stands.
//
// Facts about kube-proxy are from k8s.io/kubernetes v1.37.2: pkg/proxy/nftables,
// pkg/proxy/runner, pkg/proxy/topology.go, pkg/proxy/*changetracker.go.
package rulesync
