package lanes

import (
	"fmt"
	"sort"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/engine/timeline"
)

// marksOf are the marks of a kind in [from, to] that concern the Service, by time: its
// own and those of no Service.
func marksOf(snap *timeline.Snapshot, svc *timeline.Service, kind string, from, to time.Time) []timeline.Mark {
	pick := func(list []timeline.Mark) (out []timeline.Mark) {
		list = within(list, from, to)
		for i := range list {
			if list[i].Kind == kind {
				out = append(out, list[i])
			}
		}
		return out
	}
	a, b := pick(svc.Marks), pick(snap.Marks)
	if len(a) == 0 || len(b) == 0 {
		return append(a, b...)
	}
	out := append(a, b...)
	sort.SliceStable(out, func(i, j int) bool { return out[i].At.Before(out[j].At) })
	return out
}

// lastMark is the last of those that marksOf would give up to t, nil without one.
func lastMark(snap *timeline.Snapshot, svc *timeline.Service, t time.Time, is func(*timeline.Mark) bool) *timeline.Mark {
	last := func(list []timeline.Mark) *timeline.Mark {
		for i := sort.Search(len(list), func(i int) bool { return list[i].At.After(t) }) - 1; i >= 0; i-- {
			if is(&list[i]) {
				return &list[i]
			}
		}
		return nil
	}
	a, b := last(svc.Marks), last(snap.Marks)
	if b == nil || a != nil && a.At.After(b.At) {
		return a
	}
	return b
}

// actions is the row of what somebody asked for.
func (b *builder) actions() Row {
	r := Row{Key: "actions", Kind: RowActions, Label: "actions", Cells: b.cells()}
	o := b.overlay(r.Cells)
	marks := marksOf(b.snap, b.svc, "action", b.scale.From(), b.o.Now)
	limit := b.scale.Cols
	for i := len(marks) - 1; i >= 0; i-- {
		m := marks[i]
		if !b.inView(m.At) {
			continue
		}
		col := b.scale.Col(m.At)
		r.Cells[col] = Cell{Class: Point}
		s := printable(m.Text)
		if w := utf8.RuneCountInString(s); w > limit-col-3 {
			// Beside the right edge, or another flag, the label stands before
			// its flag where the label of the flag before leaves room.
			from := 0
			if i > 0 && b.inView(marks[i-1].At) {
				from = b.scale.Col(marks[i-1].At) + utf8.RuneCountInString(printable(marks[i-1].Text)) + 3
			}
			if at := col - 1 - w; at >= from && o.fits(at, w, 0) {
				o.put(at, s, MarkText)
				limit = at
				continue
			}
			s = cut(s, limit-col-3)
		}
		if w := utf8.RuneCountInString(s); w > 0 && o.fits(col+2, w, 0) {
			o.put(col+2, s, MarkText)
		}
		limit = col
	}
	r.Texts = o.texts()
	return r
}

// episodes is the row of the stretches in which something differed.
func (b *builder) episodes() Row {
	r := Row{Key: "episodes", Kind: RowEpisodes, Label: "episodes", Cells: b.cells()}
	o := b.overlay(r.Cells)
	type placed struct {
		x, y  int
		e     *timeline.Episode
		named bool // it routed or unrouted something
	}
	var list []placed
	all := b.svc.Episodes
	// They follow each other: those that ended before the picture are not in it.
	over := func(t time.Time) int {
		return sort.Search(len(all), func(i int) bool { return all[i].End.IsZero() || all[i].End.After(t) })
	}
	for i := over(b.scale.From()); i < len(all); i++ {
		e := &all[i]
		end := e.End
		if end.IsZero() {
			end = b.o.Now
		}
		x, y, ok := b.scale.columns(e.Start, end)
		if !ok {
			continue
		}
		for k := x; k <= y; k++ {
			if r.Cells[k].Class == Folded {
				continue
			}
			r.Cells[k].Class = Span
			r.Cells[k].Begins = k == x && !e.Start.Before(b.scale.From())
			r.Cells[k].Ends = k == y && !e.End.IsZero() && !e.End.After(b.scale.To())
			r.Cells[k].Provisional = k >= b.provisional
		}
		list = append(list, placed{x, y, e, e.Adds+e.Removes > 0})
	}
	const least = 7 // columns of an episode that can hold a character between edges
	for i := len(list) - 1; i >= 0; i-- {
		p := list[i]
		if beside := p.named && p.y+1 < len(r.Cells) && r.Cells[p.y+1].Class == Empty; p.y+1-p.x < least && !beside {
			continue // of many the words would be made in vain
		}
		text := EpisodeText(*p.e, b.o.Now)
		if o.centred(p.x, p.y+1, " "+text+" ", 2, MarkText) || o.centred(p.x, p.y+1, " "+strings.TrimSuffix(text, " so far")+" ", 2, MarkText) {
			continue
		}
		if at, w := p.y+2, utf8.RuneCountInString(text); p.named && o.fits(at, w, 1) && blank(r.Cells, at-1, w+2) {
			o.put(at, text, MarkText)
		}
	}
	r.Texts = o.texts()
	for i := over(b.o.Cursor); i < len(all); i++ {
		e := &all[i]
		if e.Start.After(b.o.Cursor) {
			break
		}
		if !e.Start.After(b.o.Cursor) && (e.End.IsZero() || e.End.After(b.o.Cursor)) {
			r.Right = "episode " + strconv.Itoa(e.N)
		}
	}
	return r
}

func blank(cells []Cell, col, w int) bool {
	for i := col; i < min(col+w, len(cells)); i++ {
		if cells[i].Class != Empty {
			return false
		}
	}
	return true
}

// EpisodeText says what an episode did and how long it took: "+3 in 2.93 s",
// "−2, 2.6 s so far".
func EpisodeText(e timeline.Episode, now time.Time) string {
	what := ""
	if e.Adds > 0 {
		what = "+" + strconv.Itoa(e.Adds)
	}
	if e.Removes > 0 {
		if what != "" {
			what += " "
		}
		what += Minus + strconv.Itoa(e.Removes)
	}
	if e.End.IsZero() {
		if what != "" {
			what += ", "
		}
		return what + Age(now.Sub(e.Start)) + " so far"
	}
	if what != "" {
		what += " in "
	}
	return what + Duration(e.End.Sub(e.Start))
}

// reconciler is the row of the embedded controller's work on the Service.
func (b *builder) reconciler() Row {
	r := Row{Key: "reconciler", Kind: RowReconciler, Label: "reconciler", Cells: b.cells()}
	queue := 0
	if b.snap.Reconciler != nil {
		queue = b.snap.Reconciler.Queue
	}
	if m := lastMark(b.snap, b.svc, b.o.Cursor, func(m *timeline.Mark) bool { return reconciled(m) != nil }); m != nil {
		queue = reconciled(m).Queue
	}
	for _, m := range marksOf(b.snap, b.svc, "reconcile", b.scale.From(), b.o.Now) {
		step := reconciled(&m)
		if step == nil {
			continue
		}
		class := Empty
		switch step.Step {
		case "wrote":
			class = Point
		case "conflict", "retry", "dropped":
			class = Alert
		}
		if class == Empty || !b.inView(m.At) {
			continue
		}
		c := &r.Cells[b.scale.Col(m.At)]
		if c.Class == Folded || class > c.Class {
			*c = Cell{Class: class}
		}
	}
	r.Right, r.Tone = fmt.Sprintf("queue %d", queue), Dim
	return r
}

// reconciled is the step of the embedded controller that a mark stands for, nil for
// others.
func reconciled(m *timeline.Mark) *collect.ReconcileStep {
	if m.Kind != "reconcile" {
		return nil
	}
	step, _ := m.Step.(*collect.ReconcileStep)
	return step
}

// printable drops control characters, so that widths can be counted in runes.
// Characters that are not narrow become a middle dot: a lane has one column for
// each.
func printable(s string) string {
	out := make([]rune, 0, len(s))
	for _, r := range s {
		switch {
		case r < 0x20 || r >= 0x7f && r < 0xa0:
		case r < 0x300 || r >= 0x2010 && r <= 0x2027 || r >= 0x2190 && r <= 0x22ff:
			out = append(out, r)
		default:
			out = append(out, '·')
		}
	}
	return string(out)
}

// cut shortens s to w columns, with an ellipsis; to nothing when that would
// leave less than four.
func cut(s string, w int) string {
	if utf8.RuneCountInString(s) <= w {
		return s
	}
	if w < 4 {
		return ""
	}
	return string([]rune(s)[:w-1]) + "…"
}
