// Package nodelog is the viewer's side of the node agents: it follows the lines
// that agents print (collect/agent) and turns them into the events of a node's
// rules, on the viewer's clock and with nothing lost in silence.
//
//	file, pipe ──┐                 ┌─▶ bound (how far is the node's clock off)
//	             ├─▶ stream ───────┤
//	pods/log ────┘ (one a node)    └─▶ collect.Sink
//
// Lines have sequence numbers, so that what is missing shows; keyframes and
// their digests say everything there is, so that a log which was rotated, or
// which is read from its middle, is enough. What was lost becomes a
// collect.Gap, and what changed meanwhile is told with its interval. Of an agent
// whose container was started anew the last lines are in the log of the container
// before it, which is read first.
//
// What a log tells from before the viewer came is the past: the state that it
// comes to is the baseline, and the changes on the way there, as far as they are
// whole, are handed over as one collect.RulesPast (history.go).
//
// It may import client-go, collect and collect/agent; nothing of engine or ui.
//
// Start with stream.go (what a line does) and table.go (what nodes have in common is
// kept once), then bound.go and causes.go (clocks),
// file.go with growth.go, pods.go and podlog.go (where lines come from). align.go does
// what bound does for a source that is no log.
package nodelog
