package recording

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sort"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/kconverge/kconverge/collect"
)

// File is an open recording. Its methods may be called by one goroutine at a time.
type File struct {
	Session collect.Session
	// Frames are its stretches; nil for plain JSON lines, which are one.
	Frames []Frame
	// Indexed: it was closed properly, so Events, From and To are known.
	Indexed  bool
	Events   uint64
	From, To time.Time
	// Tool names the program that closed it; empty where that did not say.
	Tool string
	// Cut says that it has no end: it is still being written, its program was
	// killed, or the file was cut. It may lack the last second. Lost
	// are the bytes of a last frame that was not whole.
	Cut  bool
	Lost int64
	// Size in bytes.
	Size int64

	path        string
	f           *os.File
	plain       bool
	checkpoints []checkpointAt
	lastSeq     uint64
	indexed     *collect.Session // by the index
	unzip       *zstd.Decoder
}

var zstdMagic = []byte{0x28, 0xb5, 0x2f, 0xfd}

// Open opens a recording. Errors wrap ErrNotRecording, ErrNewer or ErrDamaged where
// the content is the reason.
func Open(path string) (*File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("recording: %w", err)
	}
	r := &File{path: path, f: f}
	if err := r.open(); err != nil {
		_ = r.Close()
		return nil, err
	}
	return r, nil
}

// Close closes the file.
func (r *File) Close() error {
	if r.unzip != nil {
		r.unzip.Close()
	}
	return r.f.Close()
}

// LastSeq is the number of the last event of an indexed recording.
func (r *File) LastSeq() uint64 {
	if r.lastSeq == 0 {
		return r.Events
	}
	return r.lastSeq
}

// Path is the file's name.
func (r *File) Path() string { return r.path }

func (r *File) open() error {
	info, err := r.f.Stat()
	if err != nil {
		return fmt.Errorf("recording: %w", err)
	}
	if info.IsDir() {
		return fmt.Errorf("%s is %w but a folder", r.path, ErrNotRecording)
	}
	if r.Size = info.Size(); r.Size == 0 {
		return fmt.Errorf("recording %s is empty", r.path)
	}
	head := make([]byte, len(zstdMagic))
	n, err := r.f.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("recording: %w", err)
	}
	if r.plain = !bytes.Equal(head[:n], zstdMagic); !r.plain {
		if r.unzip, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxFrame)); err != nil {
			return err
		}
		if !r.readIndex() {
			if err := r.scan(); err != nil {
				return err
			}
		}
	}
	return r.readSession()
}

func (r *File) readSession() error {
	e, err := r.Read(0).Next()
	s, ok := e.Payload.(*collect.Session)
	switch {
	case errors.Is(err, io.EOF):
		return fmt.Errorf("recording %s holds nothing whole: it was cut off, or is damaged, before its first second, or was begun just now", r.path)
	case errors.Is(err, ErrDamaged):
		return fmt.Errorf("recording %s: its beginning is damaged: %w", r.path, err)
	case err != nil:
		return fmt.Errorf("%s is %w: %w", r.path, ErrNotRecording, err)
	case !ok:
		return fmt.Errorf("%s is %w: it starts with a %s event instead of the session's", r.path, ErrNotRecording, e.Payload.Type())
	case s.Format != "" && s.Format != Format:
		if bytes.HasPrefix([]byte(s.Format), []byte(formatPrefix)) {
			return fmt.Errorf("recording %s has the format %s, %w", r.path, collect.Plain(s.Format), ErrNewer)
		}
		return fmt.Errorf("%s is %w but %q", r.path, ErrNotRecording, collect.Plain(s.Format))
	}
	r.Session = *s
	return nil
}

// readIndex reads what Close wrote; false when it is not there or not right, and
// then the frames are looked for.
func (r *File) readIndex() bool {
	// The seek table ends with its number of frames, a descriptor and a magic
	// number; each frame has eight or twelve bytes.
	const footer = 9
	var foot [footer]byte
	if _, err := r.f.ReadAt(foot[:], r.Size-footer); err != nil || binary.LittleEndian.Uint32(foot[5:]) != 0x8F92EAB1 {
		return false
	}
	entry := int64(8)
	if foot[4]&0x80 != 0 {
		entry = 12
	}
	end := r.Size - footer - entry*int64(binary.LittleEndian.Uint32(foot[:])) - skippableHeader
	tail := make([]byte, 4+len(indexTail))
	if end < int64(len(tail)) {
		return false
	}
	if _, err := r.f.ReadAt(tail, end-int64(len(tail))); err != nil || string(tail[4:]) != indexTail {
		return false
	}
	size := int64(binary.LittleEndian.Uint32(tail))
	if size > end-int64(len(tail)) {
		return false
	}
	content := make([]byte, size)
	if _, err := r.f.ReadAt(content, end-int64(len(tail))-size); err != nil {
		return false
	}
	text, err := r.unzip.DecodeAll(content, nil)
	var x index
	if err != nil || int64(bytes.Count(text, []byte{','})) > r.Size+64 || json.Unmarshal(text, &x) != nil || len(x.Frames) == 0 {
		return false // an index that is longer than what it is of would only take memory
	}
	inside := func(offset, n int64) bool { return offset >= 0 && n > 0 && n <= r.Size && offset <= r.Size-n }
	for _, f := range x.Frames {
		if !inside(f.Offset, f.Size) {
			return false
		}
	}
	x.Checkpoints = slices.DeleteFunc(x.Checkpoints, func(c checkpointAt) bool {
		return !inside(c.Offset, c.Size) || c.Frame < 0 || c.Frame > len(x.Frames)
	})
	r.Frames, r.checkpoints = x.Frames, x.Checkpoints
	r.Indexed, r.Events, r.From, r.To, r.lastSeq = true, x.Events, x.From, x.To, x.Last
	r.indexed, r.Tool = x.Session, x.Tool
	return true
}

// scan looks for the frames of a recording without an index. Where no frame begins,
// the next one is looked for: the bytes between are lost.
func (r *File) scan() error {
	r.Cut = true
	for at := int64(0); at < r.Size; {
		size, skip, err := frameAt(r.f, at, r.Size)
		switch {
		case errors.Is(err, ErrDamaged), errors.Is(err, io.ErrUnexpectedEOF):
			next, err := r.nextFrame(at + 1)
			if err != nil {
				return err
			}
			if next < 0 {
				r.Lost += r.Size - at
				return nil
			}
			// Read will find that it is none.
			r.Frames = append(r.Frames, Frame{Offset: at, Size: next - at})
			at = next
			continue
		case err != nil:
			return fmt.Errorf("recording: %w", err)
		case !skip:
			r.Frames = append(r.Frames, Frame{Offset: at, Size: size})
		}
		at += size
	}
	return nil
}

// nextFrame finds where a whole frame begins from offset on, or -1.
func (r *File) nextFrame(offset int64) (int64, error) {
	in := bufio.NewReaderSize(io.NewSectionReader(r.f, offset, r.Size-offset), 1<<16)
	for at := offset; ; {
		b, err := in.Peek(len(zstdMagic))
		if len(b) < len(zstdMagic) {
			if err != nil && !errors.Is(err, io.EOF) {
				return -1, fmt.Errorf("recording: %w", err)
			}
			return -1, nil
		}
		if bytes.Equal(b, zstdMagic) {
			if _, skip, err := frameAt(r.f, at, r.Size); err == nil && !skip {
				return at, nil
			}
		}
		_, _ = in.Discard(1)
		at++
	}
}

// frame decompresses a frame.
func (r *File) frame(i int, buf []byte) ([]byte, error) {
	f := &r.Frames[i]
	if f.Size > maxFrame {
		return nil, fmt.Errorf("%w: a frame of %d bytes at byte %d", ErrDamaged, f.Size, f.Offset)
	}
	b := make([]byte, f.Size)
	if _, err := r.f.ReadAt(b, f.Offset); err != nil {
		return nil, fmt.Errorf("recording: %w", err)
	}
	out, err := r.unzip.DecodeAll(b, buf[:0])
	if err != nil {
		return nil, fmt.Errorf("%w: the frame at byte %d: %w", ErrDamaged, f.Offset, err)
	}
	return out, nil
}

// FrameOf gives the frame in which the event with the number stands, or the one before
// which it would. Only an indexed recording knows.
func (r *File) FrameOf(seq uint64) int {
	return max(0, sort.Search(len(r.Frames), func(i int) bool { return r.Frames[i].First > seq })-1)
}

// CheckpointOf is Checkpoint by the number of an event: the latest that is of none later.
func (r *File) CheckpointOf(seq uint64) (state []byte, frame int) {
	for i := len(r.checkpoints) - 1; i >= 0; i-- {
		if f := r.checkpoints[i].Frame; f < len(r.Frames) && r.Frames[f].First <= seq+1 {
			if state := r.state(i); state != nil {
				return state, f
			}
		}
	}
	return nil, 0
}

// Checkpoint gives the latest checkpoint of a time no later than t, and the frame to
// go on with; nil when there is none.
func (r *File) Checkpoint(t time.Time) (state []byte, frame int) {
	i := sort.Search(len(r.checkpoints), func(i int) bool { return r.checkpoints[i].At.After(t) })
	for i--; i >= 0; i-- {
		if state := r.state(i); state != nil {
			return state, r.checkpoints[i].Frame
		}
	}
	return nil, 0
}

// CheckpointSeq is the number of the last event that Checkpoint(t) knows; 0 without one.
func (r *File) CheckpointSeq(t time.Time) uint64 {
	i := sort.Search(len(r.checkpoints), func(i int) bool { return r.checkpoints[i].At.After(t) }) - 1
	switch {
	case i < 0:
		return 0
	case r.checkpoints[i].Frame < len(r.Frames):
		return max(1, r.Frames[r.checkpoints[i].Frame].First) - 1
	}
	return r.LastSeq()
}

// state reads a checkpoint, by those that it is told by; nil when it is damaged.
func (r *File) state(i int) []byte {
	first := i
	for first > 0 && r.checkpoints[first].Delta {
		first--
	}
	if i-first > longestChain {
		return nil
	}
	var state, before, b, content []byte
	for _, c := range r.checkpoints[first : i+1] {
		if int64(cap(b)) < c.Size {
			b = make([]byte, c.Size)
		}
		if _, err := r.f.ReadAt(b[:c.Size], c.Offset); err != nil {
			return nil
		}
		out, err := r.unzip.DecodeAll(b[:c.Size], content[:0])
		if err != nil {
			return nil
		}
		if !c.Delta {
			state = out
			continue
		}
		content = out
		if before, err = applyDelta(before, state, out); err != nil {
			return nil
		}
		state, before = before, state
	}
	if c := r.checkpoints[i]; (c.Delta || c.Sum != 0) && sum(state) != c.Sum {
		return nil
	}
	return state
}
