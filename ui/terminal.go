package ui

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/colorprofile"
	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/ansi"

	"github.com/kconverge/kconverge/ui/draw"
)

// terminal is what frames are shown on. As Bubble Tea does it leaves it to ultraviolet what to
// send so that one frame becomes the next; but Bubble Tea's own renderer takes a frame as
// text, which is written, read again and compared cell by cell, and it wakes up for every
// frame that there might be, sixty times a second, though nothing moves. This one gets the
// cells, looks at the lines that differ, and sleeps.
//
// It belongs to Bubble Tea's goroutine while that runs. What cannot be written is lost: a
// terminal that is gone ends the program by its signals.
type terminal struct {
	w    io.Writer
	out  bytes.Buffer // goes out in one write
	rend *uv.TerminalRenderer

	// shown is the frame on the terminal, nil when that is not known, and moving which
	// of its lines were others in the frame before.
	shown  *draw.Screen
	moving []bool

	every   time.Duration // between two frames, at least
	last    time.Time     // of the last frame
	waiting bool          // for the next frame's time
	mouse   bool
	sync    bool // the terminal shows what comes between two marks at once
}

// newTerminal makes the terminal that w leads to. Nothing is written yet.
func newTerminal(w io.Writer, o *Options, profile colorprofile.Profile) *terminal {
	t := &terminal{w: w, every: time.Second / time.Duration(o.FPS)}
	t.rend = uv.NewTerminalRenderer(&t.out, o.Environ)
	t.rend.SetColorProfile(profile)
	t.rend.SetScrollOptim(true)
	t.rend.SetTabStops(-1)
	t.rend.SetBackspace(false)
	return t
}

const (
	// mouseOn reports clicks, the wheel and dragging, by coordinates of any size.
	mouseOn  = ansi.SetModeMouseButtonEvent + ansi.SetModeMouseExtSgr
	mouseOff = ansi.ResetModeMouseButtonEvent + ansi.ResetModeMouseExtSgr
)

// keysOn asks for keys that are told apart, in both of the ways that there are.
var (
	keysOn  = ansi.SetModifyOtherKeys2 + ansi.PushKittyKeyboard(ansi.KittyDisambiguateEscapeCodes)
	keysOff = ansi.ResetModifyOtherKeys + ansi.PopKittyKeyboard(1)
)

// enter takes the terminal over, and asks it what has to be known of it.
func (t *terminal) enter(environ []string, background bool) {
	if asksForSync(environ) {
		t.out.WriteString(ansi.RequestModeSynchronizedOutput)
	}
	if background {
		t.out.WriteString(ansi.RequestBackgroundColor)
	}
	t.rend.SetFullscreen(true)
	t.rend.SetRelativeCursor(false)
	t.out.WriteString(ansi.SetModeAltScreenSaveCursor + ansi.ResetModeTextCursorEnable)
	t.out.WriteString(ansi.SetModeBracketedPaste + keysOn + ansi.SetWindowTitle("kconverge"))
	t.send()
}

// leave gives the terminal back.
func (t *terminal) leave() {
	t.setMouse(false)
	t.out.WriteString(keysOff + ansi.ResetModeBracketedPaste + ansi.SetWindowTitle(""))
	// tmux keeps lines of this screen in its history when its size has changed meanwhile,
	// and a terminal without another screen would go on below the frame.
	t.out.WriteString(ansi.EraseEntireScreen + ansi.CursorHomePosition)
	t.out.WriteString(ansi.ResetModeAltScreenSaveCursor + ansi.SetModeTextCursorEnable)
	t.send()
}

// wait is how long it is to the time of the next frame.
func (t *terminal) wait(now time.Time) time.Duration {
	d := t.every - now.Sub(t.last)
	if d > t.every { // somebody set the clock back
		return t.every
	}
	return d
}

// forget is for a terminal that may show something else than was sent: the next frame is
// sent as a whole.
func (t *terminal) forget() { t.shown = nil }

func (t *terminal) setMouse(on bool) {
	switch {
	case on == t.mouse:
		return
	case on:
		t.out.WriteString(mouseOn)
	default:
		t.out.WriteString(mouseOff)
	}
	t.mouse = on
}

// copy puts text into the clipboard of whoever sits at the terminal.
func (t *terminal) copy(text string) {
	t.out.WriteString(ansi.SetSystemClipboard(text))
	t.send()
}

// show makes the terminal show a frame. It keeps the frame, and gives a Screen for the
// next one: what is in that does not matter.
func (t *terminal) show(s *draw.Screen, now time.Time) (next *draw.Screen) {
	t.last = now
	w, h := s.Width(), s.Height()
	before := t.shown
	if before == nil || before.Width() != w || before.Height() != h {
		before = nil
		t.rend.Resize(w, h)
		t.rend.Erase()
		t.moving = make([]bool, h)
	}
	// The renderer looks at lines with a mark. It needs one as well where a line has
	// just come to rest, for what it knows of the lines as they were.
	frame := &uv.RenderBuffer{Buffer: s.Buffer(), Touched: make([]*uv.LineData, h)}
	moves := make([]bool, h)
	for y := range h {
		moves[y] = before == nil || !s.SameLine(y, before)
		switch {
		case moves[y]:
			frame.Touched[y] = &uv.LineData{LastCell: w}
		case t.moving[y]:
			frame.Touched[y] = &uv.LineData{FirstCell: -1, LastCell: -1}
		}
	}
	if slices.Contains(moves, true) {
		t.moving = moves
		t.rend.Render(frame)
		_ = t.rend.Flush()
	}
	t.send()
	t.shown = s
	if before == nil {
		return draw.NewScreen(w, h, s.Theme, s.Glyphs)
	}
	return before
}

// send writes what has gathered.
func (t *terminal) send() {
	if t.out.Len() == 0 {
		return
	}
	b := t.out.Bytes()
	if t.sync {
		b = []byte(ansi.SetModeSynchronizedOutput + t.out.String() + ansi.ResetModeSynchronizedOutput)
	}
	_, _ = t.w.Write(b)
	t.out.Reset()
}

// asksForSync tells whether a terminal may be asked for synchronized output: Apple's writes
// the question on the screen, and others may be far away. It is Bubble Tea's rule.
func asksForSync(env []string) bool {
	known := func(name string) bool { return strings.Contains(environ(env, "TERM"), name) }
	switch program := environ(env, "TERM_PROGRAM"); {
	case environ(env, "WT_SESSION") != "", known("ghostty"), known("wezterm"), known("alacritty"), known("kitty"), known("rio"):
		return true
	default:
		return environ(env, "SSH_TTY") == "" && !strings.Contains(program, "Apple")
	}
}
