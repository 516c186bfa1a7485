// Package collect holds what every part of kconverge speaks: the Event, its
// payloads, and the boundaries between whoever observes (a Source) and whoever
// is told (a Sink).
//
// One Event is small and self-contained: when it was observed on the viewer's
// clock, by which source, about which object, and the few facts the model
// needs. Whole API objects never travel. The same events feed the live screen,
// a recording and the machine-readable event stream, through one line codec.
//
// The package imports the standard library only, so that the node agent and
// the pure packages (engine/desired, engine/timeline, engine/lanes) can use it
// without pulling in client-go, a terminal or a kernel interface.
//
// Start with event.go, then payload.go; source.go has the boundaries and
// codec.go the lines.
package collect
