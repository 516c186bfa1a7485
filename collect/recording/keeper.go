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
	sizes chan int      // what the checkpoint costs that was asked for last

	// Of the goroutine, until done is closed.
	list  []checkpointAt
	state []byte // of the last checkpoint
	room  []byte // for the next one
	whole int    // bytes of the last one that is no delta
	delta int    // bytes of the last one that is
	chain int    // deltas since the last whole one
	err   error

	last  int  // what the last checkpoint costs
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
	at := int64(0)
	for w := range work {
		for i := range w.events {
			k.model.Apply(w.events[i])
		}
		if w.checkpoint == nil {
			continue
		}
		cost := 0
		if k.err == nil {
			c := *w.checkpoint
			var content []byte
			if content, k.err = k.take(&c); k.err == nil {
				c.Offset, c.Size = at, int64(len(content))
				_, k.err = k.out.WriteAt(content, at)
				k.list, at = append(k.list, c), at+c.Size
			}
			cost = k.cost()
		}
		k.sizes <- cost
	}
}

// longestChain is how many deltas follow each other: whoever moves in the recording
// reads all of them up to the one that is looked for.
const longestChain = 8

// take takes a checkpoint and gives what is written for it: a delta to the one before,
// where that is much shorter.
func (k *keeper) take(c *checkpointAt) (content []byte, err error) {
	if len(k.list) > 0 && k.chain < longestChain {
		if k.room, err = k.model.CheckpointAgain(k.room[:0]); err != nil {
			return nil, err
		}
		content = k.zip.EncodeAll(appendDelta(nil, k.state, k.room), nil)
		if k.delta = len(content); k.delta < k.whole/2 {
			k.chain, c.Delta, c.Sum = k.chain+1, true, sum(k.room)
			k.state, k.room = k.room, k.state
			return content, nil
		}
	}
	if k.state, err = k.model.Checkpoint(k.state[:0]); err != nil {
		return nil, err
	}
	content = k.zip.EncodeAll(k.state, nil)
	k.whole, k.chain, c.Sum = len(content), 0, sum(k.state)
	return content, nil
}

// cost is what one more checkpoint takes, in bytes: the whole one at the beginning of a
// chain is part of what each in it costs. Where deltas are no good each is whole.
func (k *keeper) cost() int {
	if k.delta == 0 || k.delta >= k.whole/2 {
		return k.whole
	}
	return k.delta + k.whole/longestChain
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
