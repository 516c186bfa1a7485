package ui

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/kconverge/kconverge/engine/timeline"
	"github.com/kconverge/kconverge/ui/draw"
	"github.com/kconverge/kconverge/ui/view"
)

// Export is what a person wants written to a file.
type Export struct {
	Path     string // that of a new file; its ending names the format
	Snapshot *timeline.Snapshot
	Service  string    // "default/web"; empty for all
	From, To time.Time // zero for all that is known
}

// notKept is why the last minutes cannot be saved.
const notKept = "the last minutes are not kept here"

// recordingEndings are those of recordings; one without any is one, too.
var recordingEndings = []string{"", "kcrec", "kconverge"}

// askSave asks where to save the last minutes, or to export what is shown.
func (m *Model) askSave() tea.Cmd {
	if m.o.Save == nil {
		if m.o.Export == nil {
			m.complain(notKept)
			return nil
		}
		return m.askExport()
	}
	note := "a new file   ⏎ save   esc leave"
	if m.o.Export != nil {
		note = "a new file, or ." + strings.Join(m.o.ExportFormats, " .") + " of what is shown   ⏎ save   esc leave"
	}
	m.layer = &prompt{
		title: "save the last minutes", line: true, text: "kconverge-" + m.now.Format("20060102-150405") + ".kcrec",
		note: note, enter: (*Model).save,
	}
	return nil
}

// askExport asks where to export what is shown: the chosen Service, and of the Timeline
// the time between two marks, or in view.
func (m *Model) askExport() tea.Cmd {
	switch {
	case m.o.Export == nil:
		m.complain("nothing can be exported here")
		return nil
	case m.snap == nil:
		m.complain("there is nothing to export yet")
		return nil
	}
	e := m.exported()
	name := "kconverge"
	what := "all Services"
	if e.Service != "" {
		what = e.Service
		name += "-" + strings.Map(fileRune, e.Service)
	}
	if !e.From.IsZero() {
		loc := m.now.Location()
		what += " from " + e.From.In(loc).Format("15:04:05.000") + " to " + e.To.In(loc).Format("15:04:05.000")
	}
	m.layer = &prompt{
		title: "export " + draw.Clean(what), line: true, text: name + "-" + m.now.Format("20060102-150405") + ".html",
		note: "the ending says what: ." + strings.Join(m.o.ExportFormats, " .") + "   ⏎ write   esc leave", enter: (*Model).save,
	}
	return nil
}

// fileRune keeps what a file's name may have.
func fileRune(r rune) rune {
	switch {
	case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '-':
		return r
	}
	return '-'
}

// save writes the file that the ending of its name asks for.
func (m *Model) save(path string) tea.Cmd {
	ending := strings.ToLower(strings.TrimPrefix(filepath.Ext(path), "."))
	switch {
	case path == "":
		m.complain("a name is needed")
	case m.o.Export != nil && slices.Contains(m.o.ExportFormats, ending):
		e, export := m.exported(), m.o.Export
		if e.Path = path; e.Snapshot == nil {
			m.complain("there is nothing to export yet")
			return nil
		}
		return m.act("export "+path, func(context.Context) error { return export(e) })
	case !slices.Contains(recordingEndings, ending):
		m.complain("." + draw.Clean(ending) + " is no format: choose .kcrec ." + strings.Join(m.o.ExportFormats, " ."))
	case m.o.Save == nil:
		m.complain(notKept)
	default:
		save := m.o.Save
		return m.act("save "+path, func(context.Context) error { return save(path) })
	}
	return nil
}

// exported is what is shown now.
func (m *Model) exported() Export {
	e := Export{Snapshot: m.snap}
	if m.snap == nil {
		return e
	}
	switch m.shown {
	case view.Services, view.Events, view.Findings:
		return e // of all Services
	}
	if m.snap.Service(m.focus.Namespace, m.focus.Service) == nil {
		return e
	}
	e.Service = m.focus.Namespace + "/" + m.focus.Service
	if t, ok := m.views[view.Timeline].(*view.TimelineView); ok && m.shown == view.Timeline {
		if from, to, ok := t.Window(); ok {
			e.From, e.To = from, to
			if e.From.Before(m.snap.First) {
				e.From = m.snap.First
			}
			if e.To.After(m.snap.Now) {
				e.To = m.snap.Now
			}
			if !e.From.Before(e.To) {
				e.From, e.To = time.Time{}, time.Time{}
			}
		}
	}
	return e
}
