package view

import (
	"time"

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
	HelpView ID = "help"
)

// Order is the order of the tabs.
var Order = []ID{Services, Timeline, Path, Nodes, Engine, Events}

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
	// Keys gives the first key of an action, for texts.
	Keys func(Action) string
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

// Clicker is a View that understands the mouse. Coordinates are the screen's.
type Clicker interface {
	Click(x, y int, c *Context) Request
	Wheel(up bool, x, y int, c *Context) Request
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
