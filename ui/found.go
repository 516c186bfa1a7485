package ui

import (
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/kconverge/kconverge/engine/findings"
	"github.com/kconverge/kconverge/engine/timeline"
	"github.com/kconverge/kconverge/ui/view"
)

const (
	// judgeAtOnce is how many Services are judged within the frame; more take too long
	// for one, and are judged beside it.
	judgeAtOnce = 200
	// judgeEvery is how long there is between two judgements of many Services, and
	// judgeShare how many times longer than one takes.
	judgeEvery = time.Second
	judgeShare = 100
)

// foundMsg is the judgement of a snapshot.
type foundMsg struct {
	of    *timeline.Snapshot
	found *view.Found
	took  time.Duration
}

// judge looks for findings in the snapshot, where a view shows some. It never waits for
// those of many Services.
func (m *Model) judge() tea.Cmd {
	s := m.snap
	if s == nil || s == m.judged || m.shown != view.Findings && m.shown != view.Services {
		return nil
	}
	if len(s.Services) <= judgeAtOnce {
		m.take(foundMsg{s, view.NewFound(findings.Find(s, nil)), 0})
		return nil
	}
	if m.judging || m.judged != nil && s.Now.Sub(m.judged.Now).Abs() < max(judgeEvery, m.judgeTook*judgeShare) {
		return nil
	}
	m.judging = true
	return func() tea.Msg {
		began := m.o.Clock.Now()
		found := view.NewFound(findings.Find(s, nil))
		return foundMsg{s, found, m.o.Clock.Now().Sub(began)}
	}
}

// take keeps a judgement. One that says the same as the last changes no frame.
func (m *Model) take(f foundMsg) {
	m.judging, m.judged, m.judgeTook = false, f.of, f.took
	same := func(a, b findings.Finding) bool {
		return a.Code == b.Code && a.Object == b.Object && a.Message == b.Message && a.Since.Equal(b.Since) && a.Path == b.Path
	}
	if m.found != nil && slices.EqualFunc(m.found.List, f.found.List, same) {
		return
	}
	m.found, m.dirty = f.found, true
}
