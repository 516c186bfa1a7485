package recording

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	seekable "github.com/SaveTheRbtz/zstd-seekable-format-go/pkg"
	"github.com/klauspost/compress/zstd"

	"github.com/kconverge/kconverge/collect"
)

// checkpointEvery is how many events lie between two checkpoints at least: so many are
// played in some hundredths of a second.
const checkpointEvery = 5_000

// compactBytes closes a frame: what is damaged or cut off costs no more than that.
const compactBytes = 128 << 10

// compact writes the recording at path anew: larger frames, checkpoints, an index and
// a seek table. It is exchanged at once, or stays as it was.
func compact(path string, o Options) (err error) {
	in, err := Open(path)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.CreateTemp(filepath.Dir(path), ".kconverge-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = out.Close()
			_ = os.Remove(out.Name())
		}
	}()
	if err := newCompaction(out, o).run(in); err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if err := errors.Join(out.Chmod(info.Mode().Perm()), out.Close()); err != nil {
		return err
	}
	return os.Rename(out.Name(), path)
}

// compaction is a recording being written anew.
type compaction struct {
	out   *os.File
	at    int64
	zip   *zstd.Encoder
	enc   *seekable.Encoder
	model Model
	index index

	lines  []byte
	first  collect.Event // of the frame
	events int           // of the frame
	every  int           // events between two checkpoints
	since  int           // events since the last one
	bytes  int           // compressed, of those events
	last   int           // bytes of the last one
	// kept are the checkpoints, compressed, until their place comes.
	kept []keptCheckpoint
}

type keptCheckpoint struct {
	checkpointAt
	content []byte
}

func newCompaction(out *os.File, o Options) *compaction {
	c := &compaction{out: out, every: o.CheckpointEvery}
	if c.every <= 0 {
		c.every = checkpointEvery
	}
	if o.Model != nil {
		c.model = o.Model()
	}
	return c
}

// due tells that a checkpoint is worth its room.
func (c *compaction) due() bool {
	return c.model != nil && c.since >= c.every && c.bytes+len(c.lines)/8 >= c.last
}

func (c *compaction) run(in *File) error {
	var err error
	if c.zip, err = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBetterCompression), zstd.WithEncoderConcurrency(1)); err != nil {
		return err
	}
	defer c.zip.Close()
	if c.enc, err = seekable.NewEncoder(c.zip); err != nil {
		return err
	}
	r := in.Read(0)
	for {
		e, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if err := c.take(e); err != nil {
			return err
		}
	}
	if err := c.frame(); err != nil {
		return err
	}
	return c.end()
}

func (c *compaction) take(e collect.Event) error {
	line, err := collect.Marshal(e)
	if err != nil {
		return err
	}
	if e.Seq == 0 { // a gap that reading told of
		e.Seq = c.index.Last
	}
	if c.events == 0 {
		c.first = e
	}
	if c.index.Events == 0 {
		c.index.From = e.At
	}
	if s, ok := e.Payload.(*collect.Session); ok && c.index.Session == nil {
		c.index.Session = s
	}
	c.lines = append(append(c.lines, line...), '\n')
	c.events++
	c.since++
	c.index.Events++
	c.index.Last = max(c.index.Last, e.Seq)
	if e.At.After(c.index.To) {
		c.index.To = e.At
	}
	if c.model != nil {
		c.model.Apply(e)
	}
	if len(c.lines) < compactBytes && !c.due() {
		return nil
	}
	return c.frame()
}

// frame closes a frame, and takes a checkpoint after it when one is due.
func (c *compaction) frame() error {
	if c.events == 0 {
		return nil
	}
	b, err := c.enc.Encode(c.lines)
	if err != nil {
		return err
	}
	c.index.Frames = append(c.index.Frames, Frame{Offset: c.at, Size: int64(len(b)), First: c.first.Seq, At: c.first.At, Events: c.events, Sum: sum(b)})
	if err := c.write(b); err != nil {
		return err
	}
	c.bytes += len(b)
	c.lines, c.events = c.lines[:0], 0
	if !c.due() {
		return nil
	}
	state, err := c.model.Checkpoint(nil)
	if err != nil {
		return err
	}
	content := c.zip.EncodeAll(state, nil)
	c.kept = append(c.kept, keptCheckpoint{checkpointAt{Frame: len(c.index.Frames), At: c.index.To}, content})
	c.since, c.bytes, c.last = 0, 0, len(content)
	return nil
}

func (c *compaction) write(b []byte) error {
	n, err := c.out.Write(b)
	c.at += int64(n)
	return err
}

// end writes what stands after the frames.
func (c *compaction) end() error {
	for _, k := range c.kept {
		k.Offset, k.Size = c.at+skippableHeader, int64(len(k.content))
		if err := c.write(skippable(checkpointFrame, k.content)); err != nil {
			return err
		}
		c.index.Checkpoints = append(c.index.Checkpoints, k.checkpointAt)
	}
	text, err := json.Marshal(c.index)
	if err != nil {
		return err
	}
	content := c.zip.EncodeAll(text, nil)
	content = binary.LittleEndian.AppendUint32(content, uint32(len(content)))
	if err := c.write(skippable(indexFrame, append(content, indexTail...))); err != nil {
		return err
	}
	table, err := c.enc.EndStream()
	if err != nil {
		return fmt.Errorf("seek table: %w", err)
	}
	return c.write(table)
}
