package ui

import (
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/kconverge/kconverge/ui/draw"
	"github.com/kconverge/kconverge/ui/view"
)

// rootActions are the actions that the root carries out itself, when the view
// did not.
var rootActions map[view.Action]func(*Model) tea.Cmd

func init() {
	rootActions = map[view.Action]func(*Model) tea.Cmd{
		view.Quit:      func(*Model) tea.Cmd { return tea.Quit },
		view.Help:      func(m *Model) tea.Cmd { m.layer = newHelp(m); return nil },
		view.Palette:   func(m *Model) tea.Cmd { m.layer = newPalette(m); return nil },
		view.Back:      (*Model).back,
		view.NextView:  func(m *Model) tea.Cmd { m.turn(1); return nil },
		view.PrevView:  func(m *Model) tea.Cmd { m.turn(-1); return nil },
		view.Mouse:     (*Model).toggleMouse,
		view.Redraw:    (*Model).redraw,
		view.Scale:     (*Model).askScale,
		view.Restart:   (*Model).askRestart,
		view.DeletePod: (*Model).askDelete,
		view.Faults:    (*Model).askFault,
		view.Traffic:   (*Model).askTraffic,
		view.CopyHint:  (*Model).copyHint,
		view.Save:      (*Model).askSave,
		view.Export:    (*Model).askExport,
	}
	for _, id := range view.Order {
		rootActions[view.Show(id)] = func(m *Model) tea.Cmd { m.show(id); return nil }
	}
	rootActions[view.Show(view.Path)] = (*Model).showPath
}

// key turns a key into what it means now: for a layer, a line of text, or an
// action.
func (m *Model) key(k tea.KeyPressMsg) tea.Cmd {
	m.dirty, m.touched = true, true
	if m.o.FirstUse != nil {
		m.o.FirstUse()
		m.o.FirstUse = nil
	}
	if m.layer != nil {
		return m.layer.key(m, k)
	}
	if m.typing != nil {
		return m.typeKey(k)
	}
	a, ok := m.keys.byKey[k.String()]
	if !ok {
		return nil
	}
	m.said = ""
	return m.do(a)
}

// do carries out an action: the view first, then the root.
func (m *Model) do(a view.Action) tea.Cmd {
	m.dirty = true
	if a == view.Pause {
		if cmd, waits := m.goOn(); waits {
			return cmd
		}
	}
	if f := replayActions[a]; f != nil && m.o.Replay != nil {
		return f(m)
	}
	if r := m.views[m.shown].Do(a, m.context()); r.Handled {
		return m.answer(r)
	}
	if f := rootActions[a]; f != nil {
		return f(m)
	}
	return nil
}

// answer does what a view asked for.
func (m *Model) answer(r view.Request) tea.Cmd {
	m.dirty = true
	if r.Say != "" {
		m.say(r.Say)
	}
	if r.Edit {
		if t, ok := m.views[m.shown].(view.Typer); ok {
			m.typing = t
		}
	}
	if r.Show != "" {
		m.handOver(r.Show)
	}
	if r.Copy != "" {
		return m.copy(cleanLines(r.Copy))
	}
	return nil
}

// momentView is a view that stands at a moment.
type momentView interface {
	Moment(*view.Context) (time.Time, bool)
}

// showPath shows the change under the Timeline's cursor, or the last one: not that which
// was looked at some time ago.
func (m *Model) showPath() tea.Cmd {
	if m.shown != view.Path {
		m.focus.Path = m.views[view.Timeline].(*view.TimelineView).Change(m.context())
	}
	m.show(view.Path)
	return nil
}

// handOver shows another view; the Timeline takes the moment of the view before.
func (m *Model) handOver(to view.ID) {
	if from, ok := m.views[m.shown].(momentView); ok && to == view.Timeline {
		c := m.context()
		if t, ok := from.Moment(c); ok {
			m.views[view.Timeline].(*view.TimelineView).ShowMoment(c, t)
		}
	}
	m.show(to)
}

func (m *Model) show(id view.ID) {
	if m.typing != nil {
		m.typing.EndEdit()
		m.typing = nil
	}
	if id == view.Timeline && m.focus.Service == "" && m.snap != nil && len(m.snap.Services) == 1 {
		s := m.snap.Services[0]
		m.focus = view.Focus{Namespace: s.Namespace, Service: s.Name}
	}
	if id != m.shown {
		m.last, m.shown = m.shown, id
	}
	m.dirty = true
}

func (m *Model) turn(by int) {
	for i, id := range view.Order {
		if id == m.shown {
			m.show(view.Order[(i+by+len(view.Order))%len(view.Order)])
			return
		}
	}
}

// back goes up one layer: from a Path to the Timeline, from anything to the
// Services. It never quits.
func (m *Model) back() tea.Cmd {
	switch m.shown {
	case view.Services:
	case view.Path:
		m.show(view.Timeline)
	case view.Timeline:
		m.show(view.Services)
	default:
		m.show(m.last)
	}
	return nil
}

func (m *Model) toggleMouse() tea.Cmd {
	m.mouse = !m.mouse
	if m.mouse {
		m.say("the mouse chooses lanes and moments")
	} else {
		m.say("the mouse selects text")
	}
	return nil
}

// copy puts text into the clipboard.
func (m *Model) copy(text string) tea.Cmd {
	if m.out == nil {
		return tea.SetClipboard(text)
	}
	m.out.copy(text)
	return nil
}

// redraw sends the whole frame again.
func (m *Model) redraw() tea.Cmd {
	if m.out == nil {
		return tea.ClearScreen
	}
	m.out.forget()
	return nil
}

// say shows an answer for a while.
func (m *Model) say(s string) { m.said, m.bad, m.saidAt = s, false, m.now }

// complain shows what is wrong for a while.
func (m *Model) complain(s string) { m.said, m.bad, m.saidAt = s, true, m.now }

// typeKey edits a view's line of text.
func (m *Model) typeKey(k tea.KeyPressMsg) tea.Cmd {
	s, _ := m.typing.Text()
	switch k.String() {
	case "ctrl+c":
		return tea.Quit
	case "esc":
		m.typing.SetText("", m.context())
		m.endTyping()
	case "enter":
		m.endTyping()
	case "up", "down":
		return m.do(m.keys.byKey[k.String()])
	default:
		if next, ok := editLine(s, k); ok {
			m.typing.SetText(next, m.context())
		}
	}
	return nil
}

func (m *Model) endTyping() {
	m.typing.EndEdit()
	m.typing = nil
}

// editLine applies a key to a line of text whose end is the cursor.
func editLine(s string, k tea.KeyPressMsg) (string, bool) {
	switch k.String() {
	case "backspace":
		if r := []rune(s); len(r) > 0 {
			return string(r[:len(r)-1]), true
		}
		return s, false
	case "ctrl+u":
		return "", true
	case "ctrl+w":
		s = strings.TrimRight(s, " ")
		return s[:strings.LastIndexByte(s, ' ')+1], true
	}
	if k.Text == "" {
		return s, false
	}
	return s + draw.Clean(k.Text), true
}

func (m *Model) paste(text string) {
	m.dirty = true
	if m.typing != nil {
		s, _ := m.typing.Text()
		m.typing.SetText(s+draw.Clean(text), m.context())
	}
}

// cleanLines makes text safe for a terminal and keeps its lines and tabs.
func cleanLines(s string) string {
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		cells := strings.Split(l, "\t")
		for k := range cells {
			cells[k] = draw.Clean(cells[k])
		}
		lines[i] = strings.Join(cells, "\t")
	}
	return strings.Join(lines, "\n")
}
