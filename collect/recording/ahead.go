package recording

import (
	"sync"

	"github.com/kconverge/kconverge/collect"
)

// batch is some events, after which err came.
type batch struct {
	events []collect.Event
	err    error // io.EOF at the end
}

// aheadBatch is how many events are read at once, aheadBatches how many such are read
// before they are asked for.
const aheadBatch, aheadBatches = 256, 4

// ahead reads in a goroutine of its own. The last batch has an error. stop ends it
// before that; the reader, and its file, are not to be used until it has returned.
func ahead(r *Reader) (batches <-chan batch, stop func()) {
	out, quit := make(chan batch, aheadBatches), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(out)
		for {
			b := batch{events: make([]collect.Event, 0, aheadBatch)}
			for len(b.events) < aheadBatch && b.err == nil {
				var e collect.Event
				if e, b.err = r.Next(); b.err == nil {
					b.events = append(b.events, e)
				}
			}
			select {
			case out <- b:
			case <-quit:
				return
			}
			if b.err != nil {
				return
			}
		}
	})
	return out, func() {
		close(quit)
		wg.Wait()
	}
}
