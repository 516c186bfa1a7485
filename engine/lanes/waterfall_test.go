package lanes_test

import (
	"strings"
	"testing"
	"time"

	"github.com/kconverge/kconverge/engine/lanes"
	"github.com/kconverge/kconverge/engine/lanes/lanestest"
	"github.com/kconverge/kconverge/engine/timeline"
)

func waterfall(id string) *lanes.Waterfall {
	snap := lanestest.Converging()
	svc := snap.Services[0]
	return lanes.NewWaterfall(svc.Path(id), svc.Paths, snap.Now)
}

func TestAWaterfallNamesTheNodeThatWasLast(t *testing.T) {
	w := waterfall("add-web-7d9c4b-x7k2p")
	got := strings.Join(w.Sentences(), "\n")
	want := "5.46 s from created to the last node:  53 % node-3's rule sync,  37 % waiting for the readiness probe.\nWithout node-3: 3.52 s."
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestHopsOnTheWayAddUpToTheWhole(t *testing.T) {
	w := waterfall("add-web-7d9c4b-p4d8c")
	var sum time.Duration
	end := w.From
	for _, b := range w.Bars {
		if b.Depth != 0 || b.Kind == lanes.BarPoint {
			continue
		}
		if !b.From.Equal(end) {
			t.Errorf("%s begins %v after the hop before it ended", b.Label, b.From.Sub(end))
		}
		sum, end = sum+b.Took, b.To
	}
	if sum != w.Total {
		t.Errorf("hops sum to %v of %v", sum, w.Total)
	}
}

func TestAnOpenPathSaysWhatIsMissingAndWhatItRisks(t *testing.T) {
	w := waterfall("remove-web-7d9c4b-x7k2p")
	got := strings.Join(w.Sentences(), "\n")
	for _, part := range []string{"so far:  100 % node-3's rule sync", "Missing: 1 node, first of them node-3.", "Routed for 2.35 s after termination began, 1.3 s of them with the containers gone, and still growing."} {
		if !strings.Contains(got, part) {
			t.Errorf("%q is missing in\n%s", part, got)
		}
	}
	if q := w.Quantiles(lanestest.Converging().Now); q != "first 0.23 s  median 0.87 s  last >2.34 s  missing 1  (n=3)" {
		t.Errorf("quantiles %q", q)
	}
}

func TestWithoutABottleneckNoneIsNamed(t *testing.T) {
	p := &timeline.Path{Op: timeline.OpAdd, Cause: timeline.CausePodReady, Status: timeline.StatusArrived, Origin: timeline.Moment{At: at(1000)}}
	p.Before.Created.At, p.Before.Scheduled.At, p.Before.Started.At = at(0), at(330), at(660)
	p.Slice = &timeline.Hop{Plane: timeline.PlaneID{Kind: timeline.PlaneSlices}, Step: at(1000), At: at(1300), Lag: 300 * time.Millisecond, Status: timeline.StatusArrived}
	w := lanes.NewWaterfall(p, nil, at(2000))
	if s := w.Sentences()[0]; s != "1.30 s from created to the slices: no single hop stands out." {
		t.Errorf("%q", s)
	}
}

func TestMomentsThatOnlyTheObjectClaimsAreNotHops(t *testing.T) {
	p := &timeline.Path{Op: timeline.OpAdd, Cause: timeline.CausePodReady, Status: timeline.StatusArrived, Origin: timeline.Moment{At: at(1000)}}
	p.Before.Created.Claimed = at(-5000)
	w := lanes.NewWaterfall(p, nil, at(2000))
	if len(w.Bars) != 1 || w.Bars[0].Label != "ready" || w.Total != 0 {
		t.Errorf("bars %+v", w.Bars)
	}
}

func TestANegativeLagIsShown(t *testing.T) {
	if got := lanes.Duration(-11 * time.Millisecond); got != "−11 ms" {
		t.Errorf("%q", got)
	}
}

func TestDurationsForPeople(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0 ms", 300 * time.Microsecond: "0.3 ms", -40 * time.Microsecond: "−0.1 ms", 9 * time.Millisecond: "9 ms", 99*time.Millisecond + 700*time.Microsecond: "0.10 s",
		980 * time.Millisecond: "0.98 s", 9994 * time.Millisecond: "9.99 s", 9996 * time.Millisecond: "10.0 s", 59960 * time.Millisecond: "1m00s",
		221 * time.Second: "3m41s", 2*time.Hour + 5*time.Minute: "2h05m", 76 * time.Hour: "3d04h",
	} {
		if got := lanes.Duration(d); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
	if got := lanes.ErrorBound(200 * time.Microsecond); got != "±0.2 ms" {
		t.Errorf("%q", got)
	}
	if got := lanes.EpisodeText(timeline.Episode{Start: at(0), Adds: 2, Removes: 1}, at(2600)); got != "+2 −1, 2.6 s so far" {
		t.Errorf("%q", got)
	}
}
