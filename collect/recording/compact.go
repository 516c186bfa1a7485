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
const checkpointEvery = 2_000

// overhead is how many bytes checkpoints may take for each byte of events, which are a
// twentieth of their lines: whoever moves in a recording does not want to wait.
const overhead = 4

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
	c, err := newCompaction(out, o)
	if err != nil {
		return err
	}
	if err := c.run(in); err != nil {
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
	index index

	lines  []byte
	first  collect.Event // of the frame
	events int           // of the frame
	every  int           // events between two checkpoints
	since  int           // events since the last one
	bytes  int           // compressed, of those events

	keeper *keeper // nil without checkpoints
}

func newCompaction(out *os.File, o Options) (*compaction, error) {
	c := &compaction{out: out, every: o.CheckpointEvery, index: index{Tool: o.Tool}}
	if c.every <= 0 {
		c.every = checkpointEvery
	}
	var err error
	if c.zip, err = newZip(); err != nil {
		return nil, err
	}
	if c.enc, err = seekable.NewEncoder(c.zip); err != nil {
		return nil, err
	}
	if o.Model != nil {
		if c.keeper, err = newKeeper(filepath.Dir(out.Name()), o.Model()); err != nil {
			return nil, err
		}
	}
	return c, nil
}

func newZip() (*zstd.Encoder, error) {
	return zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBetterCompression), zstd.WithEncoderConcurrency(1))
}

// due tells that a checkpoint is worth its room.
func (c *compaction) due() bool {
	return c.keeper != nil && c.since >= c.every && overhead*(c.bytes+len(c.lines)/16) >= c.keeper.size()
}

func (c *compaction) run(in *File) error {
	defer c.zip.Close()
	if c.keeper != nil {
		defer c.keeper.close()
	}
	// Reading goes ahead: it takes as long as the rest of this goroutine's work.
	batches, stop := ahead(in.Read(0))
	defer stop()
	for b := range batches {
		for i := range b.events {
			if err := c.take(b.events[i]); err != nil {
				return err
			}
		}
		if b.err != nil && !errors.Is(b.err, io.EOF) {
			return b.err
		}
	}
	if err := c.frame(); err != nil {
		return err
	}
	return c.end()
}

func (c *compaction) take(e collect.Event) error {
	var err error
	if c.lines, err = collect.AppendMarshal(c.lines, e); err != nil {
		return err
	}
	c.lines = append(c.lines, '\n')
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
	c.events++
	c.since++
	c.index.Events++
	c.index.Last = max(c.index.Last, e.Seq)
	if e.At.After(c.index.To) {
		c.index.To = e.At
	}
	if c.keeper != nil {
		c.keeper.apply(e)
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
	c.keeper.checkpoint(checkpointAt{Frame: len(c.index.Frames), At: c.index.To})
	c.since, c.bytes = 0, 0
	return nil
}

func (c *compaction) write(b []byte) error {
	n, err := c.out.Write(b)
	c.at += int64(n)
	return err
}

// end writes what stands after the frames.
func (c *compaction) end() error {
	if c.keeper != nil {
		for k, err := range c.keeper.kept() {
			if err != nil {
				return err
			}
			k.Offset = c.at + skippableHeader
			if err := c.write(skippable(checkpointFrame, k.content)); err != nil {
				return err
			}
			c.index.Checkpoints = append(c.index.Checkpoints, k.checkpointAt)
		}
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
