package recording

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/kconverge/kconverge/collect"
)

// Writer appends events to a file. It is safe for concurrent use. A killed program
// loses what came in its last second.
type Writer struct {
	o    Options
	path string
	stop chan struct{}
	done chan struct{}

	mu     sync.Mutex
	f      *os.File
	zip    *zstd.Encoder
	lines  []byte
	since  time.Time // of the first line that waits
	err    error     // of the first write that failed
	closed bool
}

// Options are a Writer's settings; the zero value works.
type Options struct {
	// Model makes what checkpoints come from, for Close. Without one the
	// recording has none, and to show a moment all before it is played.
	Model func() Model
	// CheckpointEvery is how many events lie between two checkpoints, at least;
	// 2,000 if 0. There are more where a checkpoint is larger than the events
	// between.
	CheckpointEvery int
	// Tool names the program that the checkpoints are of, exactly: File.Tool.
	Tool string
	// Plain leaves the file as it was written, without an index.
	Plain bool
}

// Model is what a recording's checkpoints come from: engine/timeline's.
type Model interface {
	Apply(collect.Event)
	// Checkpoint appends everything that is known to b.
	Checkpoint(b []byte) ([]byte, error)
	// CheckpointAgain is Checkpoint so that little differs from the one before.
	CheckpointAgain(b []byte) ([]byte, error)
}

// Create makes the file, which must not exist yet: a recording is never
// overwritten.
func Create(path string, o Options) (*Writer, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, os.ErrExist) {
		return nil, fmt.Errorf("recording %s exists already: choose another name or remove it", path)
	}
	if err != nil {
		return nil, fmt.Errorf("recording: %w", err)
	}
	zip, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedDefault), zstd.WithEncoderConcurrency(1))
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("recording: %w", err)
	}
	w := &Writer{o: o, path: path, f: f, zip: zip, stop: make(chan struct{}), done: make(chan struct{})}
	go w.flushEverySecond()
	return w, nil
}

// flushEverySecond hands on what waits although nothing more comes.
func (w *Writer) flushEverySecond() {
	defer close(w.done)
	t := time.NewTicker(frameEvery)
	defer t.Stop()
	for {
		select {
		case <-w.stop:
			return
		case <-t.C:
			w.mu.Lock()
			w.flush()
			w.mu.Unlock()
		}
	}
}

// Write implements engine/live's Recorder. An error is of this event or of those in the
// second before it; nothing is written after one.
func (w *Writer) Write(e collect.Event) error {
	if s, ok := e.Payload.(*collect.Session); ok {
		named := *s
		named.Format = Format
		e.Payload = &named
	}
	line, err := collect.Marshal(e)
	if err == nil && len(line) >= collect.MaxLine {
		err = fmt.Errorf("event of %s is %d bytes, more than the %d a line may have", e.Source, len(line), collect.MaxLine)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.err != nil:
		return w.err
	case w.closed:
		return fmt.Errorf("recording %s is closed", w.path)
	case err != nil:
		w.err = fmt.Errorf("recording %s stopped: %w", w.path, err)
		return w.err
	}
	w.lines = append(append(w.lines, line...), '\n')
	if len(w.lines) >= frameBytes {
		w.flush()
	}
	return w.err
}

// Flush hands on what waits, without waiting for its second.
func (w *Writer) Flush() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.flush()
}

// flush closes the frame. The caller holds mu.
func (w *Writer) flush() {
	if len(w.lines) == 0 || w.err != nil {
		return
	}
	frame := w.zip.EncodeAll(w.lines, nil)
	w.lines = w.lines[:0]
	at, err := w.f.Seek(0, 1)
	if err == nil {
		_, err = w.f.Write(frame)
	}
	if err != nil {
		// What came before stays a whole recording.
		_ = w.f.Truncate(at)
		w.err = fmt.Errorf("recording %s stopped: %w", w.path, err)
	}
}

// Close hands on what waits, and writes the file anew with an index. When that fails,
// for instance because there is no room for both, the recording stays as it was
// written, and whole; the error says so.
func (w *Writer) Close() error {
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		return nil
	}
	w.closed = true
	w.flush()
	err := errors.Join(w.err, w.f.Close())
	_ = w.zip.Close()
	w.mu.Unlock()
	close(w.stop)
	<-w.done
	if err != nil || w.o.Plain {
		return err
	}
	if err := compact(w.path, w.o); err != nil {
		return fmt.Errorf("recording %s is whole, but without an index: %w", w.path, err)
	}
	return nil
}
