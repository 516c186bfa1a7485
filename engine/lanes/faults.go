package lanes

import (
	"github.com/kconverge/kconverge/engine/timeline"
)

// faults are the rows of the lab's faults in the window: one for each name and
// target, in the order in which they first began.
func (b *builder) faults() (rows []Row) {
	at := map[[2]string]int{}
	for i := range b.snap.Faults {
		f := &b.snap.Faults[i]
		end := f.To
		if end.IsZero() {
			end = b.o.Now
		}
		x, y, ok := b.scale.columns(f.From, end)
		if !ok || f.From.After(b.o.Now) {
			continue
		}
		key := [2]string{f.Name, f.Target}
		n, known := at[key]
		if !known {
			n = len(rows)
			at[key] = n
			rows = append(rows, Row{Key: "fault/" + f.Name + "@" + f.Target, Kind: RowFault, Label: printable(f.Name), Cells: b.cells(), Tone: Warn})
		}
		r := &rows[n]
		for k := x; k <= y; k++ {
			if r.Cells[k].Class == Folded {
				continue
			}
			r.Cells[k].Class = Span
			r.Cells[k].Begins = r.Cells[k].Begins || k == x && !f.From.Before(b.scale.From())
			r.Cells[k].Ends = k == y && !f.To.IsZero() && !f.To.After(b.scale.To())
		}
		b.labelFault(r, f, x, y)
		if !f.From.After(b.o.Cursor) && (f.To.IsZero() || f.To.After(b.o.Cursor)) {
			r.Right = printable(f.Amount)
		}
	}
	return rows
}

// labelFault writes what a fault was set to into or behind its stretch [x, y].
func (b *builder) labelFault(r *Row, f *timeline.Fault, x, y int) {
	text := printable(f.Amount)
	if f.Target != "" {
		text += " " + printable(f.Target)
	}
	o := b.overlay(r.Cells)
	o.prepare()
	for _, t := range r.Texts {
		o.put(t.Col, t.Text, t.Kind)
	}
	if !o.centred(x, y+1, " "+text+" ", 1, MarkText) {
		if s := cut(text, b.scale.Cols-y-3); s != "" && o.fits(y+2, len([]rune(s)), 1) {
			o.put(y+2, s, MarkText)
		}
	}
	r.Texts = o.texts()
}
