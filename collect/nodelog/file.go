package nodelog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/collect/agent"
)

// pollEvery is how often a file is looked at for more where nothing tells of it, and
// the least time between two looks otherwise.
const pollEvery = 20 * time.Millisecond

// tickEvery is how often a stream is looked at for silence.
const tickEvery = time.Second

// FileOptions say which agent's lines to read from where.
type FileOptions struct {
	// Node is the node's name.
	Node string
	// Path is a file that an agent's lines are appended to, or a pipe. A
	// file that is replaced or cut off (rotated) is read on from its new
	// beginning.
	Path string
	// Clock is the viewer's; nil means the system's. ReadClock tells how far
	// it may be trusted; nil asks the kernel.
	Clock     collect.Clock
	ReadClock func() collect.NodeClock
	// Causes, when set, are what the same viewer's watches tell; they bound
	// the node's clock where it is not synchronised.
	Causes *Causes
}

// File follows one agent's lines in a file or pipe. It is a collect.Source. What
// is in the file already is the past: it tells what there is, and no lags.
type File struct{ o FileOptions }

var _ collect.Source = (*File)(nil)

// NewFile returns a File. Nothing is opened before Run.
func NewFile(o FileOptions) *File {
	if o.Clock == nil {
		o.Clock = collect.SystemClock{}
	}
	if o.ReadClock == nil {
		o.ReadClock = agent.ReadClock
	}
	return &File{o}
}

// Name implements collect.Source.
func (f *File) Name() string { return "agent's lines of " + f.o.Node + " in " + f.o.Path }

// Run implements collect.Source. It returns an error when the file cannot be
// opened or read.
func (f *File) Run(ctx context.Context, sink collect.Sink) error {
	s := newStream(f.o.Node, sink, newKnown(), f.o.Causes, f.o.ReadClock)
	t, err := openTail(f.o.Path)
	if err != nil {
		s.ended(f.o.Clock.Now(), "the agent's lines cannot be read: "+err.Error())
		return err
	}
	defer t.close()
	if t.pipe { // which has no past, and blocks while nobody writes
		s.present(f.o.Clock.Now())
		stop := context.AfterFunc(ctx, func() { _ = t.f.SetReadDeadline(time.Unix(1, 0)) })
		defer stop()
	}
	grown := watchGrowth(ctx, t)
	defer func() { grown.close() }()
	var (
		buf   = make([]byte, 64<<10)
		lines lineBuffer
		next  = f.o.Clock.Now().Add(tickEvery)
		over  bool
	)
	for ctx.Err() == nil {
		if t.pipe {
			_ = t.f.SetReadDeadline(time.Now().Add(tickEvery))
		}
		n, err := t.read(buf)
		now := f.o.Clock.Now()
		grown.read(n)
		if n > 0 {
			over = false // somebody writes to the pipe again
		}
		lines.feed(buf[:n], func(line []byte) { s.read(line, now) })
		if now.After(next) {
			s.tick(now)
			next = now.Add(tickEvery)
		}
		switch {
		case err == nil, errors.Is(err, os.ErrDeadlineExceeded):
			continue
		case ctx.Err() != nil:
			return nil
		case !errors.Is(err, io.EOF):
			s.ended(now, "the agent's lines cannot be read: "+err.Error())
			return fmt.Errorf("%s: %w", f.Name(), err)
		}
		s.present(now)
		switch anew, err := t.again(); {
		case err != nil:
			s.ended(now, "the agent's lines cannot be read: "+err.Error())
			return fmt.Errorf("%s: %w", f.Name(), err)
		case anew:
			lines.drop()
			grown.close()
			grown = watchGrowth(ctx, t)
			continue
		case t.pipe && t.started && !over:
			over = true
			lines.drop()
			s.ended(now, "the agent's lines have ended: nobody writes to "+f.o.Path+" any more")
		}
		grown.wait(ctx, max(next.Sub(now), time.Millisecond))
	}
	return nil
}

// tail reads a file that grows, and goes on with what takes its place.
type tail struct {
	path    string
	f       *os.File
	info    fs.FileInfo
	offset  int64
	pipe    bool
	started bool // something was read
}

func openTail(path string) (*tail, error) {
	t := &tail{path: path}
	return t, t.open()
}

func (t *tail) open() error {
	// Opening a named pipe would wait for its writer.
	f, err := os.OpenFile(t.path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err == nil && info.IsDir() {
		err = fmt.Errorf("%s is a directory, not an agent's lines", t.path)
	}
	if err != nil {
		f.Close()
		return err
	}
	t.f, t.info, t.offset = f, info, 0
	t.pipe = !info.Mode().IsRegular()
	return nil
}

func (t *tail) read(b []byte) (int, error) {
	n, err := t.f.Read(b)
	t.offset += int64(n)
	t.started = t.started || n > 0
	return n, err
}

// again looks, at the end of a file, whether it was cut off or another one took
// its name, and then goes to the beginning of that.
func (t *tail) again() (anew bool, err error) {
	if t.pipe {
		return false, nil
	}
	now, err := os.Stat(t.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil // between two names
	case err != nil:
		return false, err
	case !os.SameFile(now, t.info):
		t.f.Close()
		return true, t.open()
	case now.Size() < t.offset:
		t.offset = 0
		_, err := t.f.Seek(0, io.SeekStart)
		return true, err
	}
	return false, nil
}

func (t *tail) close() { t.f.Close() }

// lineBuffer cuts bytes into lines.
type lineBuffer struct{ rest []byte }

// feed calls line for each whole line, without its end. The bytes are only good
// during the call.
func (l *lineBuffer) feed(b []byte, line func([]byte)) {
	for {
		i := bytes.IndexByte(b, '\n')
		if i < 0 {
			break
		}
		text := b[:i]
		if len(l.rest) > 0 {
			text = append(l.rest, text...)
			l.rest = l.rest[:0]
		}
		if text = bytes.TrimSpace(text); len(text) > 0 {
			line(text)
		}
		b = b[i+1:]
	}
	if len(l.rest)+len(b) > collect.MaxLine {
		l.rest = l.rest[:0] // no line at all: what comes after it is heard again
		return
	}
	l.rest = append(l.rest, b...)
}

func (l *lineBuffer) drop() { l.rest = l.rest[:0] }
