package lanes_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kconverge/kconverge/engine/lanes"
	"github.com/kconverge/kconverge/engine/lanes/lanestest"
	"github.com/kconverge/kconverge/engine/timeline"
)

func bars(w *lanes.Waterfall, kinds ...lanes.BarKind) (out []string) {
	for _, b := range w.Bars {
		if slices.Contains(kinds, b.Kind) {
			out = append(out, fmt.Sprintf("%s %v %d", b.Label, b.Took, b.Share))
		}
	}
	return out
}

func TestAWaterfallTellsHowThePodEnded(t *testing.T) {
	p := &timeline.Path{Op: timeline.OpRemove, Cause: timeline.CausePodTerminating, Status: timeline.StatusArrived, Origin: timeline.Moment{At: at(1000)}}
	for i, n := range []string{"n1", "n2"} {
		when := 1400 + 500*i // 1400, 1900
		p.Rules = append(p.Rules, timeline.Hop{Plane: timeline.PlaneID{Kind: timeline.PlaneRules, Node: n}, Step: at(1010), At: at(when), Status: timeline.StatusArrived})
	}
	m := func(n int) timeline.Moment { return timeline.Moment{At: at(n)} }
	p.After = timeline.After{Terminating: m(1000), Stopped: m(1700), Terminal: timeline.Moment{Claimed: at(1000)}, Unpublished: m(2100), Gone: m(2250)}
	w := lanes.NewWaterfall(p, nil, at(9000))
	want := []string{"stopped 700ms -1", "out of rules 200ms -1", "out of slices 200ms -1", "gone 150ms -1"}
	if got := bars(w, lanes.BarAfter); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if w.Total != 900*time.Millisecond {
		t.Errorf("the change took %v: what came after does not count", w.Total)
	}
	p.Rules[1].Status, p.Rules[1].At, p.Status = timeline.StatusOpen, time.Time{}, timeline.StatusOpen
	if got := bars(lanes.NewWaterfall(p, nil, at(9000)), lanes.BarAfter); slices.ContainsFunc(got, func(s string) bool { return strings.HasPrefix(s, "out of rules") }) {
		t.Errorf("%q although a node still routes to it", got)
	}
}

func TestProbesThatFailedAndInitialisationStandBeforeReady(t *testing.T) {
	p := &timeline.Path{Op: timeline.OpAdd, Cause: timeline.CausePodReady, Status: timeline.StatusArrived, Origin: timeline.Moment{At: at(1000)}}
	p.Before.Created.At, p.Before.Scheduled.At, p.Before.Initialized.At, p.Before.Started.At = at(0), at(100), at(300), at(400)
	p.Before.Probes = []timeline.Probe{{Kind: "startup", Count: 1, First: at(0), Last: at(0), Message: "refused"}, {Kind: "readiness", Count: 2, First: at(0), Last: at(2000)}}
	w := lanes.NewWaterfall(p, nil, at(2000))
	var labels []string
	for _, b := range w.Bars {
		labels = append(labels, b.Label)
		if strings.HasSuffix(b.Label, "failed") && (b.Kind != lanes.BarClaimed || b.Took != 0 || b.Depth != 1) {
			t.Errorf("%+v", b)
		}
	}
	if want := []string{"created", "scheduled", "initialised", "started", "startup failed", "readiness failed", "ready"}; !slices.Equal(labels, want) {
		t.Fatalf("%q, want %q", labels, want)
	}
	clock := func(n int) string { return at(n).UTC().Format(time.TimeOnly) }
	if got, want := w.Bars[4].Note, "once, claimed "+clock(0)+" UTC: refused"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := w.Bars[5].Note, "2 times, claimed "+clock(0)+" to "+clock(2000)+" UTC"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// The numbers are those of lanestest.Web, see its lags.
func TestCostsInWords(t *testing.T) {
	snap := lanestest.Converging()
	svc := snap.Services[0]
	if got, want := lanes.CapacityText(svc, svc.Episodes[0], snap.Now), "worst in this episode: 4 of 7 could answer on node-3 for 2.54 s"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := lanes.CapacityText(svc, svc.Episodes[1], snap.Now); got != "" {
		t.Errorf("%q although as many as wanted could answer", got)
	}
	if got, want := lanes.UnroutedText(svc, svc.Path("add-web-7d9c4b-x7k2p"), snap.Now), "lost capacity: 2.92 pod-seconds to the last node, 1.38 as the mean of the nodes"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := lanes.UnroutedText(svc, svc.Path("remove-web-7d9c4b-x7k2p"), snap.Now); got != "" {
		t.Errorf("%q of a removal", got)
	}
	if got, want := lanes.AdviceText(svc), "a preStop of more than 2.4 s would have covered the worst of 2 removals"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := lanes.AdviceText(lanestest.Converged().Services[0]); got != "" {
		t.Errorf("%q without removals", got)
	}
}

func TestTheWrongPodIsSaid(t *testing.T) {
	p := &timeline.Path{Op: timeline.OpRemove, Cause: timeline.CausePodGone, Status: timeline.StatusHandedOver, Origin: timeline.Moment{At: at(1000)},
		Risk: timeline.Risk{WrongPod: 1500 * time.Millisecond, WrongPodGrowing: true}}
	if got := lanes.NewWaterfall(p, nil, at(9000)).Sentences(); !slices.Contains(got, "New connections could reach another pod, which had the address, for 1.5 s.") {
		t.Errorf("%q", got)
	}
	lines := lanes.Change(p, at(9000), time.UTC, 9)
	if !slices.Contains(lines, lanes.ChangeLine{Label: "wrong pod", Text: "for 1.5 s, growing !", Tone: lanes.Bad}) {
		t.Errorf("%+v", lines)
	}
}
