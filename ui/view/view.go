package view

import (
	"time"

	"github.com/kconverge/kconverge/engine/findings"
	"github.com/kconverge/kconverge/engine/timeline"
	"github.com/kconverge/kconverge/ui/draw"
	"github.com/kconverge/kconverge/ui/theme"
)

// ID names a view.
type ID string

// Views.
const (
	Services ID = "services"
	Timeline ID = "timeline"
	Path     ID = "path"
	Nodes    ID = "nodes"
	Engine   ID = "engine"
	Events   ID = "events"
	Findings ID = "findings"
	HelpView ID = "help"
)

// Order is the order of the tabs.
var Order = []ID{Services, Timeline, Path, Nodes, Engine, Events, Findings}

// Focus is what all views speak about; views change it.
type Focus struct {
	Namespace, Service string
	// Path is the change that the Path view shows, At the moment that it was
	// chosen for.
	Path string
	// Pod is the chosen pod, for actions on it.
	Pod string
	// PodGone: there is nothing left of it to act on.
	PodGone bool
	// Node is one that the Nodes view is to choose; it takes that back.
	Node string
}

// Context is what a view may read while it draws or acts. It is made anew for
// every frame.
type Context struct {
	Snap *timeline.Snapshot // nil before the first
	// Now is the time that lanes reach, on the clock of the events.
	Now   time.Time
	Loc   *time.Location
	Focus *Focus
	// Title is what is observed: "lab v1.37.2"; Waiting what the screen waits
	// for while there is no snapshot.
	Title, Waiting string
	Hint           string
	// Health is that of the needed sources.
	Health Health
	// Found is what was found in this snapshot, or in one shortly before; nil before
	// anything was judged.
	Found *Found
	// Keys gives the first key of an action, for texts.
	Keys func(Action) string
}

// Found are the findings of one snapshot. It is not changed once it is made.
type Found struct {
	List []findings.Finding
	// of counts those of each Service, by namespace/name.
	of map[string]Tally
}

// Tally counts findings.
type Tally struct{ Errors, Warnings int }

// NewFound makes a Found of a list that nobody changes any more.
func NewFound(list []findings.Finding) *Found {
	f := &Found{List: list, of: map[string]Tally{}}
	for i := range list {
		x := &list[i]
		if x.Service == "" {
			continue
		}
		t := f.of[x.Namespace+"/"+x.Service]
		switch x.Code.Severity {
		case findings.Error:
			t.Errors++
		case findings.Warning:
			t.Warnings++
		}
		f.of[x.Namespace+"/"+x.Service] = t
	}
	return f
}

// Of counts those of a Service; nothing is found before anything was judged.
func (f *Found) Of(namespace, name string) Tally {
	if f == nil {
		return Tally{}
	}
	return f.of[namespace+"/"+name]
}

// Service is the Service in focus, or nil.
func (c *Context) Service() *timeline.Service {
	if c.Snap == nil {
		return nil
	}
	if s := c.Snap.Service(c.Focus.Namespace, c.Focus.Service); s != nil {
		return s
	}
	return nil
}

// Request is what a view asks of the root. The zero value asks nothing.
type Request struct {
	// Handled: the action meant something to the view.
	Handled bool
	// Show another view.
	Show ID
	// Copy text to the clipboard.
	Copy string
	// Say something in the state line.
	Say string
	// Edit opens the view's own line of text (a filter).
	Edit bool
}

// View is one of the screen's views.
type View interface {
	// Title for the tab.
	Title() string
	// Draw paints the view into r.
	Draw(s *draw.Screen, r draw.Rect, c *Context)
	// Do carries out an action.
	Do(a Action, c *Context) Request
	// Offers are the actions that the last line of the screen shows.
	Offers() []Action
}

// Clicker is a View that understands a click. Coordinates are the screen's.
type Clicker interface {
	Click(x, y int, c *Context) Request
}

// Wheeler is a View to which the wheel means something else than up and down.
type Wheeler interface {
	Wheel(up bool, c *Context) Request
}

// Mover is a View whose picture may change as time passes although no snapshot
// arrives.
type Mover interface {
	// Every tells how often it wants to be drawn; 0, or more than a second,
	// means once a second, for the clock and the ages around the view.
	Every(c *Context) time.Duration
}

// Typer is a View with a line of text to edit.
type Typer interface {
	// Text of the line; ok is false when there is nothing to edit.
	Text() (s string, ok bool)
	// SetText is called with every change.
	SetText(s string, c *Context)
	// EndEdit is called when the line is left.
	EndEdit()
}

// drawHint paints the line to try in another terminal.
func drawHint(s *draw.Screen, x, y, w int, c *Context) {
	x2 := s.Text(x+2, y, theme.Dim, "from another terminal: ")
	s.TextIn(x2, y, x+w-x2-1, theme.Accent, c.Hint)
}

var handled = Request{Handled: true}
