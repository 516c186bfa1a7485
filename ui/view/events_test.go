package view

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kconverge/kconverge/engine/lanes/lanestest"
	"github.com/kconverge/kconverge/engine/timeline"
)

// longSession has n Events of no Service and n of its Service, in turns.
func longSession(n int) *timeline.Snapshot {
	snap := lanestest.Converging()
	snap.Gaps = []timeline.Gap{{Source: "kube/pods", From: snap.First.Add(time.Minute), To: snap.First.Add(2 * time.Minute), Why: "watch closed"}}
	snap.Services[0].Marks = nil
	for i := range n {
		at := snap.First.Add(time.Duration(2*i) * time.Millisecond)
		snap.Marks = append(snap.Marks, timeline.Mark{At: at, Kind: "event", Text: fmt.Sprintf("ScalingReplicaSet %d: Scaled up replica set", i)})
		snap.Services[0].Marks = append(snap.Services[0].Marks, timeline.Mark{At: at.Add(time.Millisecond), Kind: "sync", Node: "node-1", Text: fmt.Sprintf("committed %d", i)})
	}
	return snap
}

func texts(lines []eventLine) string {
	var out []string
	for _, l := range lines {
		out = append(out, l.text)
	}
	return strings.Join(out, "|")
}

func TestTheNewestEventsAreListedAndTheOthersCounted(t *testing.T) {
	var l eventLog
	snap := longSession(2)
	if l.read(snap); texts(l.lines) != "kube/pods: watch closed, 1m00s|node-1: committed 1|ScalingReplicaSet 1: Scaled up replica set|node-1: committed 0|ScalingReplicaSet 0: Scaled up replica set" || l.left != 0 {
		t.Errorf("%s, left %d", texts(l.lines), l.left)
	}
	if l.read(snap) {
		t.Error("the same snapshot is read twice")
	}
	if !l.read(longSession(50_000)) || len(l.lines) != logged || l.left != 100_001-logged {
		t.Errorf("%d lines, left %d", len(l.lines), l.left)
	}
	for i := 1; i < len(l.lines); i++ {
		if l.lines[i].at.After(l.lines[i-1].at) {
			t.Fatalf("line %d is later than the one before it", i)
		}
	}
}

func TestAFilterOfEventsTakesWordsAsTheyStand(t *testing.T) {
	var l eventLog
	l.read(longSession(2))
	for filter, want := range map[string]string{
		"gap":                 "kube/pods: watch closed, 1m00s",
		"GAP PODS":            "kube/pods: watch closed, 1m00s",
		"scal !1":             "ScalingReplicaSet 0: Scaled up replica set",
		"srs":                 "",
		"node-1 committed !0": "node-1: committed 1",
	} {
		if got := texts(l.holding(filter)); got != want {
			t.Errorf("%q: %s, want %s", filter, got, want)
		}
	}
	if got := l.holding(" ! "); len(got) != 5 {
		t.Errorf("a lone ! leaves %d lines", len(got))
	}
}

func BenchmarkAKeyInTheFilterOfManyEvents(b *testing.B) {
	v, snap := NewEvents(), longSession(50_000)
	c := &Context{Snap: snap, Focus: &Focus{}}
	for i := 0; b.Loop(); i++ {
		v.SetText([]string{"gap", "ga", "scal !9"}[i%3], c)
		v.lines(c)
	}
}

func BenchmarkASnapshotOfManyEvents(b *testing.B) {
	v, a, z := NewEvents(), longSession(50_000), longSession(50_000)
	v.SetText("gap", nil)
	for i := 0; b.Loop(); i++ {
		v.lines(&Context{Snap: []*timeline.Snapshot{a, z}[i%2]})
	}
}

func BenchmarkAKeyInTheFilterOfManyServices(b *testing.B) {
	v, snap := NewServices(), lanestest.Converging()
	for i := range 10_000 {
		s := *snap.Services[0]
		s.Namespace, s.Name = fmt.Sprintf("namespace-%d", i%100), fmt.Sprintf("service-with-a-name-%d", i)
		snap.Services = append(snap.Services, &s)
	}
	c := &Context{Snap: snap, Focus: &Focus{}}
	for i := 0; b.Loop(); i++ {
		v.SetText([]string{"name", "name 77", "svcwan !3"}[i%3], c)
		v.services(c)
	}
}
