package recording

import (
	"fmt"
	"io"
	"iter"
	"os"

	"github.com/klauspost/compress/zstd"

	"github.com/kconverge/kconverge/collect"
)

// keeper plays the events of a recording that is being closed to a model, in a
// goroutine of its own, and keeps the checkpoints on disk until their place comes:
// they stand after the events, and all of them are as long as these.
type keeper struct {
	model Model
	zip   *zstd.Encoder
	out   *os.File // has no name any more

	batch []collect.Event
	work  chan keeping
	done  chan struct{} // closed when nothing works any more
	sizes chan int      // of the checkpoint that was asked for last

	// Of the goroutine, until done is closed.
	list []checkpointAt
	err  error

	last  int  // bytes of the last checkpoint
	asked bool // its size is to come
}

// keeping is what the goroutine is to do: apply events, then take a checkpoint.
type keeping struct {
	events     []collect.Event
	checkpoint *checkpointAt
}

// keptCheckpoint is one with its content.
type keptCheckpoint struct {
	checkpointAt
	content []byte
}

const keeperBatch = 256

func newKeeper(dir string, m Model) (*keeper, error) {
	// A checkpoint is large, and there are many: a better level takes a third less
	// room and twice the time.
	zip, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedDefault), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	out, err := os.CreateTemp(dir, ".kconverge-*")
	if err != nil {
		_ = zip.Close()
		return nil, err
	}
	_ = os.Remove(out.Name())
	k := &keeper{model: m, zip: zip, out: out, work: make(chan keeping, 16), done: make(chan struct{}), sizes: make(chan int, 1)}
	go k.run(k.work)
	return k, nil
}

func (k *keeper) run(work <-chan keeping) {
	defer close(k.done)
	var state []byte
	at := int64(0)
	for w := range work {
		for i := range w.events {
			k.model.Apply(w.events[i])
		}
		if w.checkpoint == nil {
			continue
		}
		size := 0
		if k.err == nil {
			var err error
			if state, err = k.model.Checkpoint(state[:0]); err == nil {
				content := k.zip.EncodeAll(state, nil)
				size = len(content)
				_, err = k.out.WriteAt(content, at)
			}
			if k.err = err; err == nil {
				c := *w.checkpoint
				c.Offset, c.Size = at, int64(size)
				k.list, at = append(k.list, c), at+c.Size
			}
		}
		k.sizes <- size
	}
}

func (k *keeper) apply(e collect.Event) {
	if k.batch = append(k.batch, e); len(k.batch) == keeperBatch {
		k.work <- keeping{events: k.batch}
		k.batch = make([]collect.Event, 0, keeperBatch)
	}
}

// checkpoint takes one of the state after all events so far. size must have been
// called since the one before.
func (k *keeper) checkpoint(at checkpointAt) {
	k.work <- keeping{events: k.batch, checkpoint: &at}
	k.batch, k.asked = make([]collect.Event, 0, keeperBatch), true
}

// size is that of the last checkpoint; it waits until that is there.
func (k *keeper) size() int {
	if k.asked {
		k.last, k.asked = <-k.sizes, false
	}
	return k.last
}

// kept gives all checkpoints, after which no more events can be applied.
func (k *keeper) kept() iter.Seq2[keptCheckpoint, error] {
	return func(yield func(keptCheckpoint, error) bool) {
		k.finish()
		if k.err != nil {
			yield(keptCheckpoint{}, fmt.Errorf("a checkpoint: %w", k.err))
			return
		}
		for _, c := range k.list {
			content := make([]byte, c.Size)
			_, err := k.out.ReadAt(content, c.Offset)
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			if !yield(keptCheckpoint{c, content}, err) || err != nil {
				return
			}
		}
	}
}

// finish ends the goroutine.
func (k *keeper) finish() {
	if k.work != nil {
		_ = k.size()
		close(k.work)
		k.work = nil
	}
	<-k.done
}

func (k *keeper) close() {
	k.finish()
	_ = k.zip.Close()
	_ = k.out.Close()
}
