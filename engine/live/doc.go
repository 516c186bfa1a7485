// Package live is the running program between the sources and whoever looks:
// one goroutine owns the timeline.Model, takes the events of every source in,
// numbers and records them, moves the model's time on, and hands out immutable
// snapshots: the first at once, then at most ten a second, five while
// hundreds of events come.
//
//	sources ──Emit──▶ queue ──▶ loop ──▶ recorder, event output
//	                             │
//	                             ├──▶ timeline.Model
//	                             └──▶ snapshots ──▶ screen, Wait, report
//
// It may import collect and engine/timeline. Start with runtime.go; wait.go has
// the conditions that run and wait use.
package live
