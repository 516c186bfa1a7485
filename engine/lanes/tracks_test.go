package lanes_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/kconverge/kconverge/engine/lanes"
	"github.com/kconverge/kconverge/engine/lanes/lanestest"
)

// TestTracksTellWhatPicturesShow: at any scale a cell of a plane's lane shows the highest
// class of the stretches that touch it, and nothing where none does.
func TestTracksTellWhatPicturesShow(t *testing.T) {
	snap := lanestest.Converging()
	svc := snap.Services[0]
	all, left := lanes.Tracks(snap, svc, lanes.Beginning(snap, svc), snap.Now, 100)
	if left != 0 {
		t.Fatalf("%d nodes are left out", left)
	}
	rapid.Check(t, func(t *rapid.T) {
		cell := time.Duration(rapid.IntRange(1, 2000).Draw(t, "cell")) * time.Millisecond
		cols := rapid.IntRange(5, 200).Draw(t, "cols")
		to := snap.Now.Add(-time.Duration(rapid.IntRange(0, 10000).Draw(t, "before")) * time.Millisecond)
		pic := lanes.Build(snap, svc, lanes.Options{Cols: cols, To: to, Cell: cell, UnfoldPods: true})
		compared := 0
		for _, track := range all {
			i := pic.Row(track.Key)
			if i < 0 || track.Kind == lanes.RowPod || track.Kind == lanes.RowActions {
				continue
			}
			for col, c := range pic.Rows[i].Cells {
				span := pic.Scale.Span(col)
				want := lanes.Empty
				for _, s := range track.Stretches {
					if s.From.Before(span.To) && s.To.After(span.From) {
						want = max(want, s.Class)
					}
				}
				if c.Class != want {
					t.Fatalf("%s at %s: the picture shows %s, its track %s", track.Key, span.From, c.Class, want)
				}
				compared++
			}
		}
		if compared < 5*cols {
			t.Fatalf("only %d cells were compared", compared)
		}
	})
}

// TestTracksOfManyNodesAreThoseThatDifferedLongest.
func TestTracksOfManyNodesAreThoseThatDifferedLongest(t *testing.T) {
	snap := lanestest.Converging()
	svc := snap.Services[0]
	tracks, left := lanes.Tracks(snap, svc, snap.First, snap.Now, 1)
	if left != 2 {
		t.Errorf("%d nodes are left out", left)
	}
	if last := tracks[len(tracks)-1]; last.Key != "rules@node-3" || last.Kind != lanes.RowNode {
		t.Errorf("the node that differed longest is node-3, not %s", last.Key)
	}
}

func TestEveryClassHasAName(t *testing.T) {
	seen := map[string]bool{}
	for c := lanes.Empty; c <= lanes.Folded; c++ {
		if s := c.String(); s == "" || seen[s] {
			t.Errorf("class %d is %q", c, s)
		} else {
			seen[s] = true
		}
	}
}
