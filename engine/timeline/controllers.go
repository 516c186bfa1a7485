package timeline

import (
	"slices"
	"strings"

	"github.com/kconverge/kconverge/collect"
)

// ControllerWork counts what one embedded controller has done since the model's first
// event. Retention takes nothing from it.
type ControllerWork struct {
	Controller string
	Queue      int // depth after its last step
	Deepest    int // that the queue has been
	Syncs      int // that ended
	Wrote      int // syncs that wrote something
	Writes     int // API writes of those
	Conflicts  int // syncs that met a 409
	Retries    int // syncs that failed otherwise and are tried again
	GivenUp    int // Services that were given up
	Busy       int // workers in a sync
}

// worked returns the counts with one more step; the old ones stay as they are.
func worked(old []ControllerWork, step *collect.ReconcileStep) []ControllerWork {
	all := slices.Clone(old)
	at, found := slices.BinarySearchFunc(all, step.Controller, func(w ControllerWork, name string) int { return strings.Compare(w.Controller, name) })
	if !found {
		all = slices.Insert(all, at, ControllerWork{Controller: step.Controller})
	}
	w := &all[at]
	w.Queue, w.Deepest = step.Queue, max(w.Deepest, step.Queue)
	w.Writes += step.Writes
	switch step.Step {
	case "queued":
		return all
	case "started":
		w.Busy++
		return all
	case "wrote":
		w.Wrote++
	case "conflict":
		w.Conflicts++
	case "retry":
		w.Retries++
	case "dropped":
		w.GivenUp++
	}
	w.Syncs++
	w.Busy = max(0, w.Busy-1) // its start may have been before the first event
	return all
}

// onControllerState takes how the embedded controllers are set.
func (ch *change) onControllerState() {
	ch.m.controllers = ch.e.Payload.(*collect.ControllerState)
}
