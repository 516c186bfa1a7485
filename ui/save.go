package ui

import (
	"context"

	tea "charm.land/bubbletea/v2"
)

// notKept is why the last minutes cannot be saved.
const notKept = "the last minutes are not kept here"

// askSave asks where to save the last minutes.
func (m *Model) askSave() tea.Cmd {
	if m.o.Save == nil {
		m.complain(notKept)
		return nil
	}
	m.layer = &prompt{
		title: "save the last minutes", line: true, text: "kconverge-" + m.now.Format("20060102-150405") + ".kconverge",
		note: "a file that does not exist yet   ⏎ save   esc leave",
		enter: func(m *Model, path string) tea.Cmd {
			if path == "" {
				m.complain("a name is needed")
				return nil
			}
			save := m.o.Save
			return m.act("save "+path, func(context.Context) error { return save(path) })
		},
	}
	return nil
}
