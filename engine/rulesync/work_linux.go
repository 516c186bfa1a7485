package rulesync

import (
	"errors"
	"fmt"
)

// work collects messages in units that must not be torn apart.
type work struct {
	batch batch
	ends  []int // of each unit
}

func (w *work) unit(f func(*batch)) {
	f(&w.batch)
	if n := len(w.batch.buf); len(w.ends) == 0 && n > 0 || len(w.ends) > 0 && w.ends[len(w.ends)-1] < n {
		w.ends = append(w.ends, n)
	}
}

// runLength bounds a unit of elements.
const runLength = 500

// eachRun makes a unit of each run of slots in the same container.
func (w *work) eachRun(slots []slot, f func(b *batch, container string, run []slot)) {
	for len(slots) > 0 {
		n := 1
		for n < len(slots) && n < runLength && slots[n].container == slots[0].container {
			n++
		}
		run := slots[:n]
		w.unit(func(b *batch) { f(b, run[0].container, run) })
		slots = slots[n:]
	}
}

// retire empties chains and deletes affinity sets that nothing leads to any
// more.
func (w *work) retire(chains, sets []string) {
	w.unit(func(b *batch) {
		for _, c := range chains {
			b.flushChain(c)
		}
		for _, s := range sets {
			b.deleteSet(s)
		}
	})
}

// frameBytes is what begin and end of a transaction take.
const frameBytes = 64

// groups packs the units into transactions of at most limit bytes: one, where
// it fits.
func (w *work) groups(limit int) [][]byte {
	var out [][]byte
	start, last := 0, 0
	for _, end := range w.ends {
		if end-start > limit && last > start {
			out = append(out, w.batch.buf[start:last])
			start = last
		}
		last = end
	}
	if last > start {
		out = append(out, w.batch.buf[start:last])
	}
	return out
}

// write commits what was collected on top of generation gen, in one transaction
// where it fits. With full, errRaced means that nothing was done: a full plan
// rests on what was read before its first transaction, everything else only on
// what this process wrote.
func (s *socket) write(w *work, gen uint32, full bool) (Result, error) {
	if w.batch.err != nil {
		return Result{}, w.batch.err
	}
	res := Result{Generation: gen}
	groups := w.groups(s.limit - frameBytes)
	for i, g := range groups {
		var err error
		for try := 1; ; try++ {
			res.Generation, err = s.commit(w.batch.family, g, gen)
			if !errors.Is(err, errRaced) || full && i == 0 || try == tries {
				break
			}
			if gen, err = s.generation(); err != nil {
				break
			}
		}
		if err != nil {
			return res, err
		}
		gen = res.Generation
		res.Transactions++
	}
	if len(groups) > 1 {
		res.Note = fmt.Sprintf("in %d transactions, since one may have %d KiB here", len(groups), s.limit>>10)
	}
	return res, nil
}
