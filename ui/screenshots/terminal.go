package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/charmbracelet/x/vt"
	"github.com/creack/pty"

	"github.com/kconverge/kconverge/ui/draw"
	"github.com/kconverge/kconverge/ui/theme"
)

// terminal is a program on a pseudo terminal with an emulator at its other end.
type terminal struct {
	cmd  *exec.Cmd
	pty  *os.File
	mu   sync.Mutex
	emu  *vt.Emulator
	last time.Time // when the program drew last
	from time.Time // when something was asked of it last
	done chan struct{}
}

// size is that of a terminal in cells.
type size struct{ w, h int }

func (s size) String() string { return fmt.Sprintf("%dx%d", s.w, s.h) }

func start(ctx context.Context, s size, env []string, program string, args ...string) (*terminal, error) {
	x := &terminal{emu: vt.NewEmulator(s.w, s.h), done: make(chan struct{})}
	x.cmd = exec.CommandContext(ctx, program, args...)
	x.cmd.Env = append(os.Environ(), append(env, "TERM=xterm-256color", "COLORTERM=truecolor")...)
	x.cmd.Cancel = func() error { return x.cmd.Process.Signal(syscall.SIGTERM) }
	p, err := pty.StartWithSize(x.cmd, &pty.Winsize{Rows: uint16(s.h), Cols: uint16(s.w)})
	if err != nil {
		return nil, err
	}
	x.pty = p
	go func() { _, _ = io.Copy(p, x.emu) }() // what the terminal answers
	go func() {
		defer close(x.done)
		_, _ = io.Copy(x, p)
	}()
	return x, nil
}

// Write takes what the program draws.
func (x *terminal) Write(p []byte) (int, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.last = time.Now()
	return x.emu.Write(p)
}

// wait returns when the terminal has drawn since something was asked of it, shows all
// of the texts, and nothing new came for long enough that no frame is half drawn.
func (x *terminal) wait(ctx context.Context, texts ...string) error {
	const whole = 60 * time.Millisecond
	tick := time.NewTicker(whole / 3)
	defer tick.Stop()
	for {
		x.mu.Lock()
		text, quiet := x.emu.String(), x.last.After(x.from) && time.Since(x.last) > whole
		x.mu.Unlock()
		missing := ""
		for _, t := range texts {
			if !strings.Contains(text, t) {
				missing = t
			}
		}
		if missing == "" && quiet {
			return nil
		}
		select {
		case <-tick.C:
		case <-x.done:
			return fmt.Errorf("the program ended while %q was waited for; it showed\n%s", missing, text)
		case <-ctx.Done():
			return fmt.Errorf("%q never came; the terminal shows\n%s", missing, text)
		}
	}
}

func (x *terminal) asked() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.from = time.Now()
}

func (x *terminal) keys(keys ...string) error {
	x.asked()
	for _, k := range keys {
		if _, err := io.WriteString(x.pty, k); err != nil {
			return err
		}
	}
	return nil
}

func (x *terminal) resize(s size) error {
	x.asked()
	x.mu.Lock()
	x.emu.Resize(s.w, s.h)
	x.mu.Unlock()
	return pty.Setsize(x.pty, &pty.Winsize{Rows: uint16(s.h), Cols: uint16(s.w)})
}

func (x *terminal) capture(t *theme.Theme) *draw.Screen {
	x.mu.Lock()
	defer x.mu.Unlock()
	return draw.Capture(x.emu, x.emu.Width(), x.emu.Height(), t)
}

// close quits the program as a person does and waits for its end.
func (x *terminal) close() error {
	err := x.keys("q")
	<-x.done
	var exit *exec.ExitError
	if werr := x.cmd.Wait(); werr != nil && !errors.As(werr, &exit) {
		err = errors.Join(err, werr)
	}
	_ = x.emu.InputPipe().(io.Closer).Close()
	return errors.Join(err, x.pty.Close())
}
