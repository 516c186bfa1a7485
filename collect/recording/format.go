package recording

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/kconverge/kconverge/collect"
)

// Format names what this package writes.
const (
	Format       = "kconverge.recording/v1"
	formatPrefix = "kconverge.recording/v"
)

const (
	// frameEvery and frameBytes close a frame while a session is recorded:
	// after a second, or that many bytes of lines.
	frameEvery = time.Second
	frameBytes = 1 << 20
	// maxFrame is the most that a frame may hold: one longest line more than
	// closes it.
	maxFrame = 64 << 20
	// Numbers of our skippable frames. 14 is the seek table's.
	checkpointFrame = 5
	indexFrame      = 6
	skippableMagic  = 0x184D2A50
	skippableHeader = 8
	// indexTail ends the index frame: its length and a word to know it by.
	indexTail = "kcvIndex"
)

var (
	// ErrNotRecording is wrapped by errors about files that are no recordings.
	ErrNotRecording = errors.New("not a kconverge recording")
	// ErrNewer is wrapped by errors about recordings of a later format.
	ErrNewer = errors.New("written by a newer kconverge: update to read it")
	// ErrDamaged is wrapped by errors about a part of a recording that cannot
	// be read.
	ErrDamaged = errors.New("a part of the recording is damaged")
)

// Frame is one stretch of a recording.
type Frame struct {
	// Offset and Size are where its compressed bytes are.
	Offset int64 `json:"offset"`
	Size   int64 `json:"size"`
	// First is the number of its first event, At that one's time. A recording
	// without an index has neither until it has been read.
	First uint64    `json:"first,omitempty"`
	At    time.Time `json:"at,omitzero"`
	// Events are how many it holds.
	Events int `json:"events,omitempty"`
	// Sum is the CRC-32C of its compressed bytes; 0 in recordings from before it.
	Sum uint32 `json:"sum,omitempty"`
}

// checkpointAt is where a checkpoint is: what whoever keeps a model knew just before
// frame Frame.
type checkpointAt struct {
	Frame  int       `json:"frame"`
	At     time.Time `json:"at"`
	Offset int64     `json:"offset"` // of the content
	Size   int64     `json:"size"`
	// Delta: the content tells what became of the checkpoint before, which is
	// needed for it.
	Delta bool `json:"delta,omitempty"`
	// Sum is the CRC-32C of the checkpoint itself; 0 in recordings from before it.
	Sum uint32 `json:"sum,omitempty"`
}

// index is what the index frame holds.
type index struct {
	// Session is the one that heads the recording, for when that is damaged.
	Session *collect.Session `json:"session,omitempty"`
	// Tool is Options.Tool of whoever closed it.
	Tool string `json:"tool,omitempty"`

	Frames      []Frame        `json:"frames"`
	Checkpoints []checkpointAt `json:"checkpoints,omitempty"`
	Events      uint64         `json:"events"`
	Last        uint64         `json:"last,omitempty"` // the last event's number
	From        time.Time      `json:"from"`
	To          time.Time      `json:"to"`
}

// skippable makes a frame that Zstandard decoders pass over.
func skippable(id uint32, content []byte) []byte {
	b := binary.LittleEndian.AppendUint32(nil, skippableMagic+id)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(content)))
	return append(b, content...)
}

// frameAt reads the headers of the frame at offset: its length, and whether it is to
// be passed over. io.ErrUnexpectedEOF says that the file ends within it.
func frameAt(r io.ReaderAt, offset, end int64) (size int64, skip bool, err error) {
	var head [zstd.HeaderMaxSize]byte
	n, err := r.ReadAt(head[:min(int64(len(head)), end-offset)], offset)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, false, err
	}
	var h zstd.Header
	if err := h.Decode(head[:n]); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) || int64(n) == end-offset && n < len(head) {
			return 0, false, io.ErrUnexpectedEOF
		}
		return 0, false, fmt.Errorf("%w: no frame begins at byte %d: %w", ErrDamaged, offset, err)
	}
	if h.Skippable {
		size = int64(h.HeaderSize) + int64(h.SkippableSize)
		if offset+size > end {
			return 0, false, io.ErrUnexpectedEOF
		}
		return size, true, nil
	}
	// Blocks follow, each with a header of three bytes: whether it is the last,
	// its kind, its length (RFC 8878, 3.1.1.2).
	for at := offset + int64(h.HeaderSize); ; {
		var b [3]byte
		if _, err := r.ReadAt(b[:], at); err != nil || at+3 > end {
			return 0, false, io.ErrUnexpectedEOF
		}
		v := uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16
		length := int64(v >> 3)
		switch v >> 1 & 3 {
		case 1: // one byte, repeated
			length = 1
		case 3:
			return 0, false, fmt.Errorf("%w: a block at byte %d is of no kind", ErrDamaged, at)
		}
		if at += 3 + length; at > end {
			return 0, false, io.ErrUnexpectedEOF
		}
		if v&1 == 0 {
			continue
		}
		if h.HasCheckSum {
			at += 4
		}
		if at > end {
			return 0, false, io.ErrUnexpectedEOF
		}
		return at - offset, false, nil
	}
}
