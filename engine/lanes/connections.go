package lanes

import (
	"fmt"
	"sort"
	"time"

	"github.com/kconverge/kconverge/engine/timeline"
)

// rateOver is the time whose connections the right-hand value counts.
const rateOver = 5 * time.Second

// connections is the row of the connections that the lab's traffic opened: a line while
// they are answered, a mark where one failed. None without traffic in what is kept.
func (b *builder) connections() []Row {
	counts, failures := b.svc.Connections, b.svc.Failures
	if len(counts) == 0 && len(failures) == 0 {
		return nil
	}
	r := Row{Key: "connections", Kind: RowConnections, Label: "connections", ShortLabel: "conns", Cells: b.cells()}
	ok, since := 0, b.o.Cursor.Add(-rateOver)
	from := b.scale.From()
	if since.Before(from) {
		from = since
	}
	for i := sort.Search(len(counts), func(i int) bool { return counts[i].To.After(from) }); i < len(counts); i++ {
		c := &counts[i]
		if c.OK > 0 {
			b.paint(r.Cells, c.From, c.To, Agrees, false)
		}
		if c.To.After(since) && !c.To.After(b.o.Cursor) {
			ok += c.OK
		}
	}
	failed := 0
	failures = failures[sort.Search(len(failures), func(i int) bool { return !failures[i].Began.Before(from) }):]
	for i := range failures {
		f := &failures[i]
		if f.Began.After(since) && !f.Began.After(b.o.Cursor) {
			failed++
		}
		if b.inView(f.Began) {
			r.Cells[b.scale.Col(f.Began)] = Cell{Class: Alert}
		}
	}
	r.Texts = b.failureTexts(r.Cells, failures)
	r.Right, r.Tone = fmt.Sprintf("%d/s ok", (ok+int(rateOver/time.Second)/2)/int(rateOver/time.Second)), Good
	if failed > 0 {
		r.Right, r.Short, r.Tone = fmt.Sprintf("%d failed in %ds", failed, int(rateOver/time.Second)), fmt.Sprintf("%d failed", failed), Bad
	}
	if ok == 0 && failed == 0 {
		r.Right, r.Tone = "none", Dim
	}
	return []Row{r}
}

// failureTexts counts the failures of each stretch of columns behind it.
func (b *builder) failureTexts(cells []Cell, failures []timeline.ConnectionFailure) []Text {
	const apart = 4 // columns without a failure that end a stretch
	o := b.overlay(cells)
	n, last := 0, -1
	put := func() {
		text := fmt.Sprintf("%d failed", n)
		if n > 0 && o.fits(last+2, len(text), 1) {
			o.put(last+2, text, StaleText)
		}
		n = 0
	}
	for i := range failures {
		if !b.inView(failures[i].Began) {
			continue
		}
		col := b.scale.Col(failures[i].Began)
		if n > 0 && col-last > apart {
			put()
		}
		n, last = n+1, col
	}
	put()
	return o.texts()
}
