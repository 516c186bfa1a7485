package collect

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"time"
)

// MaxLine is the longest line that the codec writes or reads, in bytes. A rule
// generation of a very large cluster is the longest thing there is.
const MaxLine = 16 << 20

// A line of more than manyBytes with more than manyEmpty parts that say nothing is none
// that Marshal wrote: it would only take a hundred times its own room.
const (
	manyBytes = 64 << 10
	manyEmpty = 10_000
)

// payloadTypes makes an empty payload for each wire name. It is the closed set
// of payloads.
var payloadTypes = map[string]func() Payload{}

func init() {
	for _, mk := range []func() Payload{
		func() Payload { return new(Pod) },
		func() Payload { return new(Service) },
		func() Payload { return new(EndpointSlice) },
		func() Payload { return new(Endpoints) },
		func() Payload { return new(Node) },
		func() Payload { return new(Workload) },
		func() Payload { return new(KubeEvent) },
		func() Payload { return new(Rules) },
		func() Payload { return new(Vouch) },
		func() Payload { return new(SourceState) },
		func() Payload { return new(Gap) },
		func() Payload { return new(Session) },
		func() Payload { return new(Action) },
		func() Payload { return new(ReconcileStep) },
		func() Payload { return new(ControllerState) },
		func() Payload { return new(SyncStep) },
		func() Payload { return new(Advance) },
		func() Payload { return new(AgentState) },
		func() Payload { return new(Keyframe) },
		func() Payload { return new(ProxyState) },
		func() Payload { return new(ClockBound) },
		func() Payload { return new(RulesPast) },
		func() Payload { return new(Fault) },
		func() Payload { return new(Connections) },
		func() Payload { return new(ConnectionFailed) },
		func() Payload { return new(Narration) },
	} {
		payloadTypes[mk().Type()] = mk
	}
}

// Payloads returns an empty one of each kind, sorted by name.
func Payloads() (out []Payload) {
	for _, name := range slices.Sorted(maps.Keys(payloadTypes)) {
		out = append(out, payloadTypes[name]())
	}
	return out
}

// wire is one line. Field order is the reading order for people.
type wire struct {
	Seq       uint64          `json:"seq,omitempty"`
	At        time.Time       `json:"at"`
	NotBefore time.Time       `json:"notBefore,omitzero"`
	Source    SourceID        `json:"src"`
	Type      string          `json:"type"`
	Op        Op              `json:"op,omitempty"`
	Object    *ObjectKey      `json:"obj,omitempty"`
	UID       string          `json:"uid,omitempty"`
	RV        uint64          `json:"rv,omitempty"`
	Data      json.RawMessage `json:"data,omitempty"`
}

// ErrBadLine is wrapped by every error about the content of a line, as opposed
// to errors of the reader underneath.
var ErrBadLine = errors.New("not a kconverge event line")

// Marshal encodes one event as JSON without a newline. Times are UTC with
// nanoseconds.
func Marshal(e Event) ([]byte, error) {
	if e.Payload == nil {
		return nil, fmt.Errorf("event %d of %s has no payload", e.Seq, e.Source)
	}
	data, err := json.Marshal(e.Payload)
	if err != nil {
		return nil, fmt.Errorf("encode %s event of %s: %w", e.Payload.Type(), e.Source, err)
	}
	if bytes.Equal(data, []byte("{}")) {
		data = nil
	}
	w := wire{Seq: e.Seq, At: e.At.UTC(), Source: e.Source, Type: e.Payload.Type(), Op: e.Op, UID: e.UID, RV: e.ResourceVersion}
	if !e.NotBefore.IsZero() {
		w.NotBefore = e.NotBefore.UTC()
	}
	if e.Object != (ObjectKey{}) {
		w.Object = &e.Object
	}
	line, err := json.Marshal(w)
	if err != nil || data == nil {
		return line, err
	}
	// The data goes last and is as it is to be; as a part of w it would be read and
	// written once more.
	return append(append(append(line[:len(line)-1], `,"data":`...), data...), '}'), nil
}

// Unmarshal decodes one line. Unknown fields are ignored; an unknown payload
// type is an error that wraps ErrBadLine and names the type, since it comes
// from a newer version.
func Unmarshal(line []byte) (Event, error) { return unmarshal(line, nil) }

// unmarshal is Unmarshal with the strings that were read before.
func unmarshal(line []byte, names map[string]string) (Event, error) {
	var e Event
	if hollow(line) {
		return e, fmt.Errorf("%w: it is long and mostly of empty parts", ErrBadLine)
	}
	if d := (decoder{b: line, names: names}); d.event(&e) {
		return e, nil
	}
	return unmarshalAny(line)
}

// hollow tells that a line is long and says nothing.
func hollow(line []byte) bool {
	return len(line) > manyBytes && bytes.Count(line, []byte("{}"))+bytes.Count(line, []byte("null")) > manyEmpty
}

// unmarshalAny is Unmarshal by encoding/json.
func unmarshalAny(line []byte) (Event, error) {
	var w wire
	if err := json.Unmarshal(line, &w); err != nil {
		return Event{}, fmt.Errorf("%w: %w", ErrBadLine, err)
	}
	mk, ok := payloadTypes[w.Type]
	if !ok {
		return Event{}, fmt.Errorf("%w: unknown event type %q: a newer kconverge wrote it, update to read it", ErrBadLine, w.Type)
	}
	p := mk()
	if len(w.Data) > 0 {
		if err := json.Unmarshal(w.Data, p); err != nil {
			return Event{}, fmt.Errorf("%w: %s: %w", ErrBadLine, w.Type, err)
		}
	}
	e := Event{Seq: w.Seq, At: w.At, NotBefore: w.NotBefore, Source: w.Source, Op: w.Op, UID: w.UID, ResourceVersion: w.RV, Payload: p}
	if w.Object != nil {
		e.Object = *w.Object
	}
	return e, nil
}

// Writer writes events as lines. It is safe for concurrent use. Nothing is
// buffered: when Write returned nil the line was handed to the writer below.
type Writer struct {
	mu sync.Mutex
	w  io.Writer
}

// NewWriter returns a Writer onto w.
func NewWriter(w io.Writer) *Writer { return &Writer{w: w} }

// Write writes one event and a newline in a single call to the writer below.
func (w *Writer) Write(e Event) error {
	b, err := Marshal(e)
	if err != nil {
		return err
	}
	if len(b) >= MaxLine {
		return fmt.Errorf("event of %s is %d bytes, more than the %d a line may have", e.Source, len(b), MaxLine)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	_, err = w.w.Write(append(b, '\n'))
	return err
}

// Reader reads events from lines. It is not safe for concurrent use.
type Reader struct {
	in    *bufio.Reader // nil when all is in rest
	rest  []byte
	long  []byte // a line that does not fit into the buffer of in
	line  int
	names map[string]string
}

// NewReader returns a Reader of r.
func NewReader(r io.Reader) *Reader {
	return &Reader{in: bufio.NewReaderSize(r, 64<<10), names: map[string]string{}}
}

// NewLineReader returns a Reader of lines in memory, which must stay as they are until
// they are read. It keeps the strings of the Reader before, which may be nil and is not
// to be used any more: events that follow each other share most.
func NewLineReader(lines []byte, before *Reader) *Reader {
	r := &Reader{rest: lines}
	if before != nil {
		r.names = before.names
	} else {
		r.names = map[string]string{}
	}
	return r
}

// errTooLong is of a line that is longer than MaxLine.
var errTooLong = fmt.Errorf("%w: it is longer than %d bytes", ErrBadLine, MaxLine)

// Read returns the next event, or io.EOF at the end. After an error that wraps
// ErrBadLine reading can go on with the next line. Empty lines are skipped.
func (r *Reader) Read() (Event, error) {
	for {
		line, err := r.next()
		switch {
		case errors.Is(err, io.EOF):
			return Event{}, io.EOF
		case err != nil:
			return Event{}, fmt.Errorf("line %d: %w", r.line, err)
		case len(bytes.TrimSpace(line)) == 0:
			continue
		}
		e, err := unmarshal(bytes.TrimSuffix(line, []byte("\r")), r.names)
		if err != nil {
			return Event{}, fmt.Errorf("line %d: %w", r.line, err)
		}
		return e, nil
	}
}

// next gives the next line, without its end.
func (r *Reader) next() ([]byte, error) {
	if r.in != nil {
		return r.nextOf()
	}
	if len(r.rest) == 0 {
		return nil, io.EOF
	}
	r.line++
	line, rest, _ := bytes.Cut(r.rest, []byte{'\n'})
	if r.rest = rest; len(line) > MaxLine {
		return nil, errTooLong
	}
	return line, nil
}

// nextOf is next of a reader. Of a line that is too long no more is kept than that.
func (r *Reader) nextOf() ([]byte, error) {
	r.line++
	r.long = r.long[:0]
	tooLong := false
	for {
		part, err := r.in.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			if tooLong = tooLong || len(r.long)+len(part) > MaxLine; !tooLong {
				r.long = append(r.long, part...)
			}
			continue
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		if errors.Is(err, io.EOF) && len(part) == 0 && len(r.long) == 0 && !tooLong {
			return nil, io.EOF
		}
		part = bytes.TrimSuffix(part, []byte{'\n'})
		if tooLong || len(r.long)+len(part) > MaxLine {
			r.long = nil // the room is not needed again
			return nil, errTooLong
		}
		if len(r.long) == 0 {
			return part, nil
		}
		r.long = append(r.long, part...)
		return r.long, nil
	}
}
