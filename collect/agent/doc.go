// Package agent is what runs on a node: it reads the node's rules with
// collect/noderules and prints them as lines of collect's codec, with sequence
// numbers, heartbeats, keyframes, the state of the node's clock, and what the
// local kube-proxy says about itself. Whoever follows the lines
// (collect/nodelog) can tell whether any is missing.
//
// It may import the standard library, golang.org/x/sys, collect and
// collect/noderules: nodes never carry client-go or anything of engine or ui.
//
// Start with agent.go (what runs), then queue.go (what waits to be printed, and
// what happens when nobody reads) and split.go (how a long content becomes
// several short lines).
package agent
