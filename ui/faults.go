package ui

import (
	"context"
	"strings"

	tea "charm.land/bubbletea/v2"
)

// Fault is something of the lab that can be made to go wrong.
type Fault struct {
	// Name and Syntax are how it is written: "sync-delay", "DURATION[@NODE]".
	Name, Syntax string
	// Does says what goes wrong, See where one sees it.
	Does, See string
	// Example is a value for it: "5s@node-2".
	Example string
	// Active are the values that it is set to: "5s@node-2".
	Active []string
}

// Faults sets the lab's faults.
type Faults interface {
	// Faults are all that there are.
	Faults() []Fault
	// SetFault sets or clears one, given as NAME=VALUE.
	SetFault(ctx context.Context, text string) error
}

// noFaults is why nothing can be made to go wrong.
const noFaults = "only a lab can be made to fail"

// askFault opens the menu of faults: first those in force, which are cleared from there.
func (m *Model) askFault() tea.Cmd {
	if m.o.Faults == nil {
		m.complain(noFaults)
		return nil
	}
	p := &palette{title: "faults: enter sets one, or clears one that is in force"}
	faults := m.o.Faults.Faults()
	all := 0
	for _, f := range faults {
		for _, value := range f.Active {
			all++
			p.entries = append(p.entries, entry{name: f.Name + "=" + value, help: "in force: clear it", run: func(m *Model) tea.Cmd { return m.clearFault(f.Name, value) }})
		}
	}
	if all > 1 {
		p.entries = append(p.entries, entry{name: "all off", help: "clear every fault", run: func(m *Model) tea.Cmd { return m.clearFaults(faults) }})
	}
	for _, f := range faults {
		p.entries = append(p.entries, entry{name: f.Name, help: f.Does, run: func(m *Model) tea.Cmd { return m.askValue(f) }})
	}
	p.ready()
	m.layer = p
	return nil
}

// faultEntries are what the palette offers of faults.
func faultEntries(o *Options) (out []entry) {
	if o.Faults == nil {
		return nil
	}
	for _, f := range o.Faults.Faults() {
		out = append(out, entry{name: "fault " + f.Name, help: f.Does, run: func(m *Model) tea.Cmd { return m.askValue(f) }})
	}
	return out
}

// askValue asks what a fault is to be set to.
func (m *Model) askValue(f Fault) tea.Cmd {
	m.layer = &prompt{
		title: "fault " + f.Name, text: f.Example, line: true, fresh: true, note: f.Syntax + "   off clears   enter: do it   esc: leave",
		enter: func(m *Model, s string) tea.Cmd {
			if s == "" {
				return nil
			}
			text := f.Name + "=" + s
			return m.act("fault "+text, func(ctx context.Context) error { return m.o.Faults.SetFault(ctx, text) })
		},
	}
	return nil
}

// clearFault clears a fault that is set to value.
func (m *Model) clearFault(name, value string) tea.Cmd {
	text := offOf(name, value)
	return m.act("fault "+text, func(ctx context.Context) error { return m.o.Faults.SetFault(ctx, text) })
}

func offOf(name, value string) string {
	text := name + "=off"
	if _, target, ok := strings.Cut(value, "@"); ok {
		text += "@" + target
	}
	return text
}

// clearFaults clears all that are in force.
func (m *Model) clearFaults(faults []Fault) tea.Cmd {
	return m.act("faults off", func(ctx context.Context) error {
		for _, f := range faults {
			for _, value := range f.Active {
				if err := m.o.Faults.SetFault(ctx, offOf(f.Name, value)); err != nil {
					return err
				}
			}
		}
		return nil
	})
}
