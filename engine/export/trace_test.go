package export

import (
	"fmt"
	"slices"
	"testing"
)

// TestTracesKeepTheFormatsRules: every event has what its phase needs, asynchronous spans
// come in pairs, slices of a thread never cross, and each end of a flow stands in a slice.
func TestTracesKeepTheFormatsRules(t *testing.T) {
	type at struct{ pid, tid, ts float64 }
	flows := 0
	for name, s := range scenarios(t) {
		f := readTrace(t, document(t, s))
		open, slicesOf := map[string]float64{}, map[[2]float64][][2]float64{}
		marks, flowEnds, steps := map[at]bool{}, []at{}, map[string]string{}
		for _, e := range f.Events {
			ph, pid, tid := e["ph"].(string), e["pid"].(float64), e["tid"].(float64)
			ts, _ := e["ts"].(float64)
			key := fmt.Sprint(e["cat"], e["id"], e["name"], pid)
			switch ph {
			case "M":
				continue
			case "b":
				if _, twice := open[key]; twice {
					t.Errorf("%s: %s begins twice", name, key)
				}
				open[key] = ts
			case "e":
				if from, ok := open[key]; !ok || ts < from {
					t.Errorf("%s: %s ends at %g, began at %g (%v)", name, key, ts, from, ok)
				}
				delete(open, key)
			case "X":
				slicesOf[[2]float64{pid, tid}] = append(slicesOf[[2]float64{pid, tid}], [2]float64{ts, ts + e["dur"].(float64)})
				marks[at{pid, tid, ts}] = true
			case "s", "t", "f":
				steps[key] += ph
				flowEnds = append(flowEnds, at{pid, tid, ts})
				if ph != "s" && e["bp"] != "e" {
					t.Errorf("%s: a flow's %s does not bind to the slice around it", name, ph)
				}
			case "i":
				if e["s"] != "p" {
					t.Errorf("%s: an instant without a scope", name)
				}
			default:
				t.Errorf("%s: phase %q", name, ph)
			}
		}
		if len(open) > 0 {
			t.Errorf("%s: never ended: %v", name, open)
		}
		for thread, list := range slicesOf {
			slices.SortFunc(list, func(a, b [2]float64) int {
				if a[0] < b[0] {
					return -1
				}
				return 1
			})
			for i := 1; i < len(list); i++ {
				if list[i][0] < list[i-1][1]-1e-6 {
					t.Errorf("%s: slices of thread %v cross: %v", name, thread, list[i-1:i+1])
				}
			}
		}
		for _, x := range flowEnds {
			if !marks[x] {
				t.Errorf("%s: a flow ends in no slice: %+v", name, x)
			}
		}
		for key, s := range steps {
			if s != "sf" && s != "stf" {
				t.Errorf("%s: flow %s goes %s", name, key, s)
			}
		}
		flows += len(steps)
	}
	if flows < 50 {
		t.Errorf("only %d flows", flows)
	}
}
