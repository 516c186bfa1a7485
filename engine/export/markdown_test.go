package export

import (
	"testing"

	"github.com/kconverge/kconverge/engine/timeline"
)

// TestTheSlowestChangesComeFirst, after those that still are under way; what was
// superseded ended when it was.
func TestTheSlowestChangesComeFirst(t *testing.T) {
	superseded := 0
	for name, s := range scenarios(t) {
		d := document(t, s)
		for i := range d.Report.Services {
			order := d.slowestFirst(&d.Report.Services[i])
			for k, p := range order {
				if p.Status == string(timeline.StatusSuperseded) {
					superseded++
				}
				if k == 0 {
					continue
				}
				before := order[k-1]
				wasOpen, isOpen := before.Status == string(timeline.StatusOpen), p.Status == string(timeline.StatusOpen)
				if isOpen && !wasOpen || isOpen == wasOpen && d.end(before).Sub(before.Origin.At) < d.end(p).Sub(p.Origin.At) {
					t.Errorf("%s: %s (%s, %s) before %s (%s, %s)", name, before.ID, before.Status, d.end(before).Sub(before.Origin.At), p.ID, p.Status, d.end(p).Sub(p.Origin.At))
				}
			}
		}
	}
	if superseded < 3 {
		t.Errorf("%d superseded changes were compared", superseded)
	}
}
