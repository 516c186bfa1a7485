// Command up runs the cluster of engine/cluster in the foreground, for whoever
// wants to try kconverge on real kube-proxies: `make cluster`. Ctrl-C ends it, and
// nothing is left; so does another up with -down (`make cluster-down`), which waits
// for that. One runs at a time on a machine.
//
// Start with main.go. running.go has the locked file that tells of a running cluster,
// down.go how that is ended and what is then looked for.
package main
