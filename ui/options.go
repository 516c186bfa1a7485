package ui

import (
	"context"
	"io"
	"os"
	"time"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/engine/live"
)

// Actions is what the screen may change. Its methods may take as long as their
// context allows; they are called outside the goroutine that draws.
type Actions interface {
	// Scale sets spec.replicas of a Deployment, StatefulSet or ReplicaSet.
	Scale(ctx context.Context, namespace, kind, name string, replicas int32) error
	// Restart starts a rolling restart of a Deployment, StatefulSet or
	// DaemonSet.
	Restart(ctx context.Context, namespace, kind, name string) error
	// DeletePod asks for a Pod's deletion.
	DeletePod(ctx context.Context, namespace, pod string) error
}

// Replay moves within a recording (engine/live's Replay). Its methods may wait for what
// it does just now; they are called outside the goroutine that draws, but for Status.
type Replay interface {
	Status() live.ReplayStatus
	Play()
	Pause()
	SetSpeed(x float64)
	Seek(t time.Time)
	Step(events int)
	StepTo(what live.Stop)
}

// Options say what the screen shows and how. The zero value works.
type Options struct {
	// Title is what is observed, for the first line: "lab v1.37.2".
	Title string
	// Namespace observed, for the first line; empty means all.
	Namespace string
	// Focus is the Service to open the Timeline of, "default/web". Empty opens
	// the list of Services.
	Focus string
	// Theme is one of theme.Names; empty means "auto".
	Theme string
	// ASCII draws with ASCII characters only.
	ASCII bool
	// NoMouse leaves the mouse to the terminal.
	NoMouse bool
	// Actions changes things; nil when that is not possible, then NoActions
	// says why: "this cluster is only watched".
	Actions Actions
	// Faults makes things go wrong; nil where that is not possible.
	Faults    Faults
	NoActions string
	// Input and Output are the terminal; nil means standard input and output.
	Input  io.Reader
	Output io.Writer
	// Environ is the environment, nil means the process's.
	Environ []string
	// FPS is the most frames a second; 0 means 30.
	FPS int
	// Clock tells the time between snapshots; nil means the wall clock.
	Clock collect.Clock
	// Recorded says that the Snapshots come from a recording: the screen's now
	// is theirs and never the wall clock's, however fast they come.
	Recorded bool
	// Replay moves within the recording that the Snapshots come from; nil when
	// they come from elsewhere, or from a recording that is only played.
	Replay Replay
	// Next lets the script that plays go on where it waits for that; nil when none
	// plays.
	Next func()
	// Hint is a line to try in another terminal, shown where there is room until
	// the first change, and in the help and the palette always.
	Hint string
	// Waiting is what the screen waits for before the first snapshot:
	// "the API server of context dev". Empty means the first events.
	Waiting string
	// Save writes the last minutes to a recording, which must not exist yet; nil when
	// they are not kept.
	Save func(path string) error
	// Export writes what is shown in a format of ExportFormats, which are the endings
	// of the names of files; nil where that is not possible.
	Export        func(Export) error
	ExportFormats []string
	// FirstUse is called once, with the first key, when this person has not used
	// the screen before; until then the last line tells where to start. Nil for
	// everybody else.
	FirstUse func()
	// Keys binds other keys to actions, by the action's name.
	Keys map[string][]string
}

func (o *Options) fill() {
	if o.Environ == nil {
		o.Environ = os.Environ()
	}
	if o.Clock == nil {
		o.Clock = collect.SystemClock{}
	}
	if o.FPS <= 0 {
		o.FPS = 30
	}
	if o.Title == "" {
		o.Title = "kconverge"
	}
	if o.NoActions == "" {
		o.NoActions = "what is shown here is only watched"
	}
	if o.Waiting == "" {
		o.Waiting = "waiting for the first events of " + o.Title
	} else {
		o.Waiting = "waiting for " + o.Waiting
	}
}
