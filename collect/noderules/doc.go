// Package noderules reads a node's kernel rules over netlink and turns them
// into collect.Rules events: which endpoints each Service port is spread over,
// and which addresses lead there, after every committed generation.
//
// It joins the kernel's nftables notifications, dumps what exists (accepted
// only when one generation covers the whole dump), then applies every later
// generation. State is resolved at the end of a generation and compared with
// the previous resolution; single messages never become events, because a
// transaction may delete, re-create and re-name on its way. What the kernel
// dropped shows as a collect.Gap, followed by a fresh dump. Legacy iptables is no
// part of nftables and notifies nobody: it is polled, and a change found there
// carries the interval in which it lies.
//
// Layouts: kube-proxy's nftables mode (1.37, and up to 1.36), its iptables mode
// over nf_tables and over legacy iptables, and kconverge's own flat one. A node is
// told of by one layout at a time; a node with none says what is there instead.
//
// It may import the standard library, github.com/mdlayher/netlink,
// golang.org/x/sys and collect; nothing of engine or ui. What talks to the
// kernel is in _linux.go files, the rest (decoding, mirror, layouts) builds
// everywhere; elsewhere Run and Read return *UnsupportedError.
//
// Start with source.go, then run_linux.go (the loop), wakeup_linux.go (when
// something came), tracker.go (generations),
// layout.go (the registry of rule layouts), shown.go (which one is told of),
// kubeproxy.go, iptables.go and flat.go (the layouts). Rules of iptables go through
// xtrule.go; legacy.go reads the legacy tables' blocks and poll_linux.go asks for
// them.
package noderules
