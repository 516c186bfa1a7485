package recording

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/kconverge/kconverge/collect"
)

// Reader gives the events of a recording one by one.
type Reader struct {
	file  *File
	next  int // frame
	buf   []byte
	lines *collect.Reader
	read  *collect.Reader // the one before, whose strings come again
	plain bool
	ended bool

	// last is the last event's time, lost says that something before the next
	// event cannot be read.
	last    time.Time
	lost    error
	sources map[collect.SourceID]bool
	waiting []collect.Event
	// since is when the last event before a part that cannot be read was; told
	// are the objects that something came of since then.
	since time.Time
	told  map[objectKey]bool
	// Damaged counts the parts that could not be read.
	Damaged int
}

// Read reads from a frame on; 0 is the start.
func (r *File) Read(frame int) *Reader {
	out := &Reader{file: r, next: frame, sources: map[collect.SourceID]bool{}}
	if r.plain {
		out.lines, out.plain = collect.NewReader(bufio.NewReaderSize(io.NewSectionReader(r.f, 0, r.Size), 1<<20)), true
	}
	return out
}

// Knows tells of what came before the frame that reading began with: the time of the
// last event, and the sources that told something.
func (r *Reader) Knows(last time.Time, ids ...collect.SourceID) {
	r.last = last
	for _, id := range ids {
		r.sources[id] = true
	}
}

// Next returns the next event, or io.EOF at the end. A part that is damaged costs the
// events in it; then a Gap of every source so far is the next: what they tell after
// that rests on what nobody knows. A last line that was cut off is no error.
func (r *Reader) Next() (collect.Event, error) {
	for {
		if len(r.waiting) > 0 {
			e := r.waiting[0]
			r.waiting = r.waiting[1:]
			return e, nil
		}
		if r.lines == nil {
			if err := r.open(); err != nil {
				return collect.Event{}, err
			}
		}
		e, err := r.lines.Read()
		switch {
		case err == nil:
			if r.lost != nil && !r.last.IsZero() {
				r.tell(e)
				continue
			}
			if r.lost != nil { // the session's own line, too
				if r.file.indexed == nil {
					return collect.Event{}, r.lost
				}
				r.begin()
				r.tell(e)
				continue
			}
			return r.give(e), nil
		case errors.Is(err, io.EOF):
			if r.lines = nil; r.plain {
				r.plain, r.next = false, len(r.file.Frames)
			}
		case errors.Is(err, collect.ErrBadLine):
			if err := r.badLine(err); err != nil {
				return collect.Event{}, err
			}
		default:
			return collect.Event{}, fmt.Errorf("%s: %w", r.file.path, err)
		}
	}
}

// badLine decides about a line that is none: at the end of a plain file it was being
// written, and at its start it is no recording.
func (r *Reader) badLine(bad error) error {
	if r.last.IsZero() {
		return bad
	}
	if r.plain {
		e, err := r.lines.Read()
		if errors.Is(err, io.EOF) {
			r.file.Cut = true
			r.lines, r.plain, r.next = nil, false, len(r.file.Frames)
			return nil
		}
		if err == nil {
			r.damaged(bad)
			r.tell(e)
			return nil
		}
	}
	r.damaged(bad)
	return nil
}

// begin puts the session that the index tells of in the place of the one that cannot
// be read. What the sources told there is lost with it.
func (r *Reader) begin() {
	r.last = r.file.From
	r.sources[SourceRecording] = true
	r.waiting = append(r.waiting, collect.Event{At: r.last, Source: collect.SourceClock, Payload: r.file.indexed})
}

// SourceRecording is the source of what becomes of a recording itself.
const SourceRecording collect.SourceID = "recording"

func (r *Reader) damaged(err error) {
	if r.lost == nil {
		r.Damaged++
	}
	r.lost = err
}

// tell puts a gap of every source before the event.
func (r *Reader) tell(e collect.Event) {
	for _, id := range slices.Sorted(maps.Keys(r.sources)) {
		r.waiting = append(r.waiting, collect.Event{At: r.last, Source: id, Payload: &collect.Gap{From: r.last, Why: collect.WhyUnreadable}})
	}
	r.lost, r.since, r.told = nil, r.last, map[objectKey]bool{}
	r.waiting = append(r.waiting, r.give(e))
}

// give notes an event. What comes of an object for the first time after a part that
// cannot be read may have come about there.
func (r *Reader) give(e collect.Event) collect.Event {
	r.last = e.At
	r.sources[e.Source] = true
	if k := (objectKey{e.Source, e.Object}); r.told != nil && !r.told[k] {
		r.told[k] = true
		if e.NotBefore.IsZero() && r.since.Before(e.At) && (e.Op != collect.OpNone || e.Payload.Type() == (*collect.Rules)(nil).Type()) {
			e.NotBefore = r.since
		}
	}
	return e
}

// open goes on with the next frame that can be read.
func (r *Reader) open() error {
	for ; r.next < len(r.file.Frames); r.next++ {
		b, err := r.file.frame(r.next, r.buf)
		if err != nil {
			if !errors.Is(err, ErrDamaged) {
				return err
			}
			r.damaged(err)
			continue
		}
		r.buf, r.lines = b, collect.NewLineReader(b, r.read)
		r.read = r.lines
		r.next++
		return nil
	}
	return io.EOF
}
