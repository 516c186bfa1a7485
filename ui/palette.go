package ui

import (
	"sort"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/kconverge/kconverge/ui/draw"
	"github.com/kconverge/kconverge/ui/theme"
	"github.com/kconverge/kconverge/ui/view"
)

// entry is one thing the palette offers.
type entry struct {
	name, help, keys, not string
	run                   func(*Model) tea.Cmd
}

// palette finds any action by name.
type palette struct {
	entries []entry
	names   []string
	found   []int
	text    string
	at      int
	title   string // empty for that of all actions
}

func newPalette(m *Model) *palette {
	p := &palette{}
	for _, i := range paletteOrder() {
		e := entry{name: string(i.Action), help: i.Help, keys: m.keys.all(i.Action), run: func(m *Model) tea.Cmd { return m.do(i.Action) }}
		switch {
		case i.Action == view.CopyHint:
			if m.o.Hint == "" {
				e.not = noHint
			}
		case i.Group == view.GroupPlay && m.o.Replay == nil:
			continue
		case i.Group == view.GroupLab && m.o.Actions == nil:
			e.not = m.o.NoActions
		}
		p.entries = append(p.entries, e)
	}
	if m.snap != nil {
		for _, s := range m.snap.Services {
			f := view.Focus{Namespace: s.Namespace, Service: s.Name}
			p.entries = append(p.entries, entry{name: s.Namespace + "/" + s.Name, help: "timeline of this Service", run: func(m *Model) tea.Cmd {
				m.focus = f
				m.show(view.Timeline)
				return nil
			}})
		}
	}
	p.entries = append(p.entries, faultEntries(&m.o)...)
	p.ready()
	return p
}

// ready lets the entries be found.
func (p *palette) ready() {
	for _, e := range p.entries {
		p.names = append(p.names, draw.Clean(e.name+" "+e.help))
	}
	p.match("")
}

// paletteOrder puts what people look for before what their hands know.
func paletteOrder() []view.Info {
	var out []view.Info
	for _, g := range []string{view.GroupLab, view.GroupPlay, view.GroupView, view.GroupTime, view.GroupLanes, view.GroupOther, view.GroupMove} {
		for _, i := range view.Actions {
			if i.Group == g {
				out = append(out, i)
			}
		}
	}
	return out
}

func (p *palette) match(s string) {
	p.text, p.found, p.at = s, view.Match(s, p.names), 0
	// What is called so comes before what is only described so.
	word := strings.ToLower(strings.Join(strings.Fields(s), "-"))
	if word == "" {
		return
	}
	rank := func(i int) int {
		switch name := strings.ToLower(p.entries[i].name); {
		case strings.HasPrefix(name, word):
			return 0
		case strings.Contains(name, word):
			return 1
		}
		return 2
	}
	sort.SliceStable(p.found, func(a, b int) bool { return rank(p.found[a]) < rank(p.found[b]) })
}

func (p *palette) key(m *Model, k tea.KeyPressMsg) tea.Cmd {
	switch k.String() {
	case "ctrl+c":
		return tea.Quit
	case "esc", "ctrl+p":
		m.layer = nil
	case "up", "ctrl+k":
		p.at = max(0, p.at-1)
	case "down", "ctrl+j", "tab", "ctrl+n":
		p.at = max(0, min(len(p.found)-1, p.at+1))
	case "enter":
		m.layer = nil
		if p.at < len(p.found) {
			m.said = ""
			return p.entries[p.found[p.at]].run(m)
		}
	default:
		if s, ok := editLine(p.text, k); ok {
			p.match(s)
		}
	}
	return nil
}

func (p *palette) draw(s *draw.Screen, r draw.Rect) {
	title := p.title
	if title == "" {
		title = "all actions"
	}
	in := box(s, r, 84, min(r.Dy(), 20), title)
	x := s.Text(in.Min.X, in.Min.Y, theme.Accent, "> ")
	x = s.TextIn(x, in.Min.Y, in.Dx()-3, theme.Strong, p.text)
	s.Glyph(x, in.Min.Y, theme.Accent, s.Glyphs.Caret)
	y, h := in.Min.Y+2, in.Dy()-2
	if len(p.found) == 0 {
		s.TextIn(in.Min.X+2, y, in.Dx()-2, theme.Dim, "nothing is called so")
		return
	}
	first := max(0, min(p.at-h/2, len(p.found)-h))
	for i := 0; i < h && first+i < len(p.found); i++ {
		e := p.entries[p.found[first+i]]
		name, help := theme.Text, theme.Dim
		if e.not != "" {
			name = theme.Dim
		}
		if first+i == p.at {
			name = theme.Accent
			s.Glyph(in.Min.X, y+i, theme.Accent, s.Glyphs.Chosen)
		}
		s.NameIn(in.Min.X+2, y+i, 20, name, e.name)
		end := s.Right(in.Max.X, y+i, theme.Dim, e.keys) - 1
		text := e.help
		if e.not != "" {
			text = "not here: " + e.not
		}
		s.TextIn(in.Min.X+24, y+i, end-in.Min.X-24, help, text)
	}
}
