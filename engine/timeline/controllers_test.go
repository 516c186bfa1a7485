package timeline

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kconverge/kconverge/collect"
)

func TestTheWorkOfControllersIsCounted(t *testing.T) {
	var all []ControllerWork
	step := func(controller, step string, queue, worker, writes int) []ControllerWork {
		before := all
		was := append([]ControllerWork(nil), before...)
		all = worked(all, &collect.ReconcileStep{Controller: controller, Step: step, Queue: queue, Worker: worker, Writes: writes})
		if diff := cmp.Diff(was, before); diff != "" {
			t.Errorf("a snapshot's counts were changed: %s", diff)
		}
		return all
	}
	step("endpointslice", "queued", 1, 0, 0)
	step("endpointslice", "queued", 2, 0, 0)
	step("endpointslice", "started", 1, 1, 0)
	if w := step("endpointslice", "started", 0, 2, 0); w[0].Busy != 2 {
		t.Errorf("%d workers are busy", w[0].Busy)
	}
	step("endpoints", "queued", 1, 0, 0)
	step("endpointslice", "conflict", 0, 1, 1)
	step("endpointslice", "wrote", 0, 2, 2)
	step("endpointslice", "started", 0, 1, 0)
	step("endpointslice", "retry", 0, 1, 0)
	step("endpointslice", "started", 0, 1, 0)
	step("endpointslice", "dropped", 0, 1, 0)
	step("endpointslice", "started", 0, 5, 0)
	got := step("endpointslice", "unchanged", 0, 5, 0)
	want := []ControllerWork{
		{Controller: "endpoints", Queue: 1, Deepest: 1},
		{Controller: "endpointslice", Deepest: 2, Syncs: 5, Wrote: 1, Writes: 3, Conflicts: 1, Retries: 1, GivenUp: 1},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
