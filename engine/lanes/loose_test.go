package lanes

import (
	"strings"
	"testing"
	"time"

	"github.com/kconverge/kconverge/engine/timeline"
)

func TestWhatIsKnownAsAnIntervalIsToldAsAtMost(t *testing.T) {
	at := time.Unix(1000, 0)
	slices := timeline.PlaneID{Kind: timeline.PlaneSlices}
	hop := func(node string, lag, width time.Duration) timeline.Hop {
		h := timeline.Hop{
			Plane: timeline.PlaneID{Kind: timeline.PlaneRules, Node: node}, Step: at, At: at.Add(lag), Lag: lag, FromStep: lag,
			Error: time.Millisecond, Status: timeline.StatusArrived,
		}
		if width > 0 {
			h.NotBefore = h.At.Add(-width)
		}
		return h
	}
	slice := timeline.Hop{Plane: slices, Step: at, At: at, Status: timeline.StatusArrived}
	p := &timeline.Path{Op: timeline.OpAdd, Cause: timeline.CausePodReady, Origin: timeline.Moment{At: at}, Slice: &slice, Status: timeline.StatusArrived}
	for _, c := range []struct {
		rules              []timeline.Hop
		sentence, nodes    string
		took, error, moved string
	}{
		{
			[]timeline.Hop{hop("a", 300*time.Millisecond, 0), hop("b", 1200*time.Millisecond, time.Second)},
			"At most 1.20 s from", "first 0.30 s  median 0.30 s  last ≤1.20 s", "≤1.20 s", Minus + "1.00 s", "at most +1.20 s",
		},
		{ // what is wanting is less than what is shown anyway
			[]timeline.Hop{hop("a", 300*time.Millisecond, 0), hop("b", 1200*time.Millisecond, 2*time.Millisecond)},
			"1.20 s from", "first 0.30 s  median 0.30 s  last 1.20 s", "1.20 s", "±1 ms", "+1.20 s",
		},
	} {
		p.Rules = c.rules
		w := NewWaterfall(p, nil, at.Add(time.Minute))
		if s := w.Sentences()[0]; !strings.HasPrefix(s, c.sentence) {
			t.Errorf("%q, want %q", s, c.sentence)
		}
		if s := w.Quantiles(at.Add(time.Minute)); !strings.HasPrefix(s, c.nodes) {
			t.Errorf("%q, want %q", s, c.nodes)
		}
		h := &w.Nodes[0]
		moved, _ := HopText(*h, at, at)
		if got := []string{AtMost(h, h.FromStep), HopError(h), moved}; got[0] != c.took || got[1] != c.error || got[2] != c.moved {
			t.Errorf("%q, want %q", got, []string{c.took, c.error, c.moved})
		}
		for _, b := range w.Bars {
			if b.AtMost != (strings.HasPrefix(c.took, "≤") && (b.Node == "b" || b.Kind == BarNode && b.Depth == 0)) {
				t.Errorf("bar %q: at most %v", b.Label, b.AtMost)
			}
		}
	}
}
