package consumers

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/tools/txtar"

	"github.com/kconverge/kconverge/engine/export"
	"github.com/kconverge/kconverge/engine/lanes/lanestest"
	"github.com/kconverge/kconverge/engine/timeline"
	"github.com/kconverge/kconverge/engine/timeline/timelinetest"
)

func document(t *testing.T, s *timeline.Snapshot) *export.Document {
	t.Helper()
	d, err := export.New(s, export.Options{Tool: "kconverge test"})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func exported(t *testing.T, write func(io.Writer) error) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := write(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// scenarios are those of testdata/scenarios, each played to its end.
func scenarios(t *testing.T) map[string]*timeline.Snapshot {
	t.Helper()
	files, err := filepath.Glob("../scenarios/*.txtar")
	if err != nil || len(files) < 50 {
		t.Fatalf("scenarios: %d, %v", len(files), err)
	}
	out := map[string]*timeline.Snapshot{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		m, sc := timeline.New(timeline.Options{}), timelinetest.New()
		for _, part := range txtar.Parse(data).Files {
			if word, _, _ := strings.Cut(part.Name, " "); word == "events" {
				events, err := sc.Parse(string(part.Data))
				if err != nil {
					t.Fatal(err)
				}
				for _, e := range events {
					m.Apply(e)
				}
			}
		}
		out[strings.TrimSuffix(filepath.Base(file), ".txtar")] = m.Snapshot()
	}
	return out
}

// hostile is a Snapshot with one text in every field that a cluster fills in.
func hostile(evil string) *timeline.Snapshot {
	snap := lanestest.Converging()
	snap.Session.Name, snap.Session.Rules, snap.Session.ControlPlane = evil, evil, evil
	svc := snap.Services[0]
	svc.Namespace, svc.Name = evil, evil
	for i := range svc.Pods {
		svc.Pods[i].Name, svc.Pods[i].Node, svc.Pods[i].UID = evil, evil, evil
	}
	for _, p := range svc.Paths {
		p.By, p.Endpoint.Pod, p.Endpoint.Node, p.ID = evil, evil, evil, p.ID+evil
		p.Before.Probes = []timeline.Probe{{Kind: evil, Count: 1, First: snap.First, Last: snap.First, Message: evil}}
		for k := range p.Rules {
			p.Rules[k].Note, p.Rules[k].OfficialWhy = evil, evil
			p.Rules[k].Plane.Node += evil
		}
		p.Slice.Note = evil
	}
	for _, p := range append([]*timeline.Plane{svc.Slices, svc.Endpoints}, svc.Rules.All()...) {
		for i := range p.Members {
			p.Members[i].Endpoint.Pod, p.Members[i].Endpoint.Node = evil, evil
		}
		for i := range p.Changes {
			p.Changes[i].Note = evil
		}
		if p.ID.Node != "" {
			p.ID.Node += evil
		}
	}
	for i := range svc.Marks {
		svc.Marks[i].Text = evil
	}
	svc.Differences = append(svc.Differences, timeline.Difference{
		Plane: timeline.PlaneID{Kind: timeline.PlaneRules, Node: evil}, Kind: "stale", Since: snap.First, Endpoint: timeline.Endpoint{Pod: evil, Node: evil},
	})
	snap.Gaps = append(snap.Gaps, timeline.Gap{Source: "rules/node-1", From: snap.First, To: snap.First.Add(time.Second), Why: evil})
	snap.Nodes = append(snap.Nodes, timeline.Node{Name: evil, Exists: true, Ready: true, Unknown: []string{evil}, UnknownSince: snap.First})
	return snap
}
