package nodelog

import (
	"strings"
	"testing"
	"time"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/engine/timeline"
)

const ipvsText = "kube-proxy runs in IPVS mode, whose virtual servers are not read"

// A node that routes Services otherwise is blind to a viewer who follows its
// agent, whether he has the agent's rules or its keyframes only, and also when
// the line that said so is lost.
func TestAnAgentsNodeThatRoutesElsewhereIsBlind(t *testing.T) {
	none := func(seq uint64, text string) collect.Event {
		e := rulesLine(seq, seq == 1, nil...)
		e.Payload.(*collect.Rules).NoLayout = text
		return e
	}
	frame := func(seq uint64, text string) collect.Event {
		e := rulesLine(seq, false)
		e.Payload = &collect.Keyframe{Node: "node-1", Generation: uint32(seq), NoLayout: text}
		return e
	}
	for _, test := range []struct {
		name  string
		lines []collect.Event
		why   string
	}{
		{"rules", []collect.Event{none(1, ipvsText)}, ipvsText},
		{"a keyframe only", []collect.Event{frame(7, ipvsText)}, ipvsText},
		{"a lost line", []collect.Event{none(1, collect.NoRules), frame(3, ipvsText)}, ipvsText},
		{"nothing found", []collect.Event{none(1, collect.NoRules)}, ""},
		{"nothing found, in a keyframe only", []collect.Event{frame(7, collect.NoRules)}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := timeline.New(timeline.Options{})
			var synced string
			sink := collect.SinkFunc(func(e collect.Event) {
				if s, ok := e.Payload.(*collect.SourceState); ok && s.State == collect.SourceSynced && s.Detail != "" {
					synced = s.Detail
				}
				m.Apply(e)
			})
			s := newStream("node-1", sink, newKnown(), nil, noClock)
			s.present(aMarch)
			for _, e := range test.lines {
				s.line(e, e.At.Add(time.Millisecond))
			}
			now := aMarch.Add(time.Minute)
			m.Apply(collect.Event{At: now, Source: collect.SourceClock, Payload: &collect.Advance{}})
			snap := m.Snapshot()
			want := timeline.Known
			if test.why != "" {
				want = timeline.Blind
			}
			if len(snap.Nodes) != 1 || snap.Nodes[0].Rules != want {
				t.Errorf("nodes %+v", snap.Nodes)
			}
			for _, src := range snap.Sources {
				if src.ID == collect.RulesSource("node-1") && test.why != "" && src.Detail != test.why {
					t.Errorf("the source says %q", src.Detail)
				}
			}
			if !strings.Contains(synced, "no table of a known rule layout") {
				t.Errorf("synced with %q", synced)
			}
		})
	}
}
