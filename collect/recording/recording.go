package recording

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/kconverge/kconverge/collect"
)

// Writer appends events to a file. Each event is handed to the operating
// system when Write returns, so a killed program loses none. It is safe for
// concurrent use.
type Writer struct {
	f *os.File
	w *collect.Writer
}

// Create makes the file, which must not exist yet: a recording is never
// overwritten.
func Create(path string) (*Writer, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, os.ErrExist) {
		return nil, fmt.Errorf("recording %s exists already: choose another name or remove it", path)
	}
	if err != nil {
		return nil, fmt.Errorf("recording: %w", err)
	}
	return &Writer{f: f, w: collect.NewWriter(f)}, nil
}

// Write implements engine/live's Recorder.
func (w *Writer) Write(e collect.Event) error {
	if err := w.w.Write(e); err != nil {
		return fmt.Errorf("recording %s stopped: %w", w.f.Name(), err)
	}
	return nil
}

// Close closes the file.
func (w *Writer) Close() error { return w.f.Close() }

// Player plays a recording as a Source.
type Player struct {
	path  string
	speed float64
}

// Open checks that path is a recording and returns a Player. speed is the
// number of recorded seconds that pass in one second; 0 plays everything at
// once.
func Open(path string, speed float64) (*Player, collect.Session, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, collect.Session{}, fmt.Errorf("recording: %w", err)
	}
	defer f.Close()
	e, err := collect.NewReader(bufio.NewReader(f)).Read()
	s, ok := e.Payload.(*collect.Session)
	switch {
	case errors.Is(err, io.EOF):
		return nil, collect.Session{}, fmt.Errorf("recording %s is empty", path)
	case err != nil:
		return nil, collect.Session{}, fmt.Errorf("%s is not a kconverge recording: %w", path, err)
	case !ok:
		return nil, collect.Session{}, fmt.Errorf("%s is not a kconverge recording: it starts with a %s event instead of the session's", path, e.Payload.Type())
	}
	return &Player{path: path, speed: speed}, *s, nil
}

// Name implements collect.Source.
func (p *Player) Name() string { return "recording " + p.path }

// Run implements collect.Source: it emits every event and returns at the end
// of the file. A last line that was cut off is not an error.
func (p *Player) Run(ctx context.Context, sink collect.Sink) error {
	f, err := os.Open(p.path)
	if err != nil {
		return err
	}
	defer f.Close()
	r := collect.NewReader(bufio.NewReaderSize(f, 1<<20))
	var first time.Time
	begin := time.Now()
	for {
		e, err := r.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			if _, next := r.Read(); errors.Is(next, io.EOF) && errors.Is(err, collect.ErrBadLine) {
				return nil
			}
			return fmt.Errorf("%s: %w", p.path, err)
		}
		if first.IsZero() {
			first = e.At
		}
		if p.speed > 0 {
			due := begin.Add(time.Duration(float64(e.At.Sub(first)) / p.speed))
			t := time.NewTimer(time.Until(due))
			select {
			case <-ctx.Done():
				t.Stop()
				return nil
			case <-t.C:
			}
		}
		if ctx.Err() != nil {
			return nil
		}
		sink.Emit(e)
	}
}
