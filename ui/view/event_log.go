package view

import (
	"container/heap"
	"sort"
	"strings"
	"time"

	"github.com/kconverge/kconverge/engine/lanes"
	"github.com/kconverge/kconverge/engine/timeline"
	"github.com/kconverge/kconverge/ui/theme"
)

// logged is how many of the newest events are listed and searched: the work of a
// key is bounded however long a session lasts.
const logged = 5000

// eventLine is one line of the list of events.
type eventLine struct {
	at         time.Time
	kind, text string
	role       theme.Role
	words      string // kind and text in lower case, for the filter
}

// eventLog is the newest events of a snapshot, newest first.
type eventLog struct {
	of    *timeline.Snapshot
	lines []eventLine
	left  int // how many older ones there are
}

// read takes in a snapshot and tells whether it is another one than before.
func (l *eventLog) read(snap *timeline.Snapshot) (fresh bool) {
	if snap == l.of {
		return false
	}
	*l = eventLog{of: snap}
	from := make(sources, 0, len(snap.Services)+2)
	total := 0
	add := func(marks []timeline.Mark) {
		total += len(marks)
		if len(marks) > 0 {
			from = append(from, source{marks, len(from)})
		}
	}
	add(snap.Marks)
	for _, svc := range snap.Services {
		add(svc.Marks)
	}
	add(gapMarks(snap.Gaps))
	heap.Init(&from)
	for len(from) > 0 && len(l.lines) < logged {
		last := &from[0]
		l.lines = append(l.lines, lineOf(last.marks[len(last.marks)-1]))
		if last.marks = last.marks[:len(last.marks)-1]; len(last.marks) == 0 {
			heap.Pop(&from)
		} else {
			heap.Fix(&from, 0)
		}
	}
	l.left = total - len(l.lines)
	return true
}

// holding are the lines that hold every word of the filter, in any case, and
// none that has a "!" in front.
func (l *eventLog) holding(filter string) []eventLine {
	words := strings.Fields(strings.ToLower(filter))
	if len(words) == 0 {
		return l.lines
	}
	var out []eventLine
	for i := range l.lines {
		e := &l.lines[i]
		if e.words == "" {
			e.words = strings.ToLower(e.kind + " " + e.text)
		}
		if holdsAll(e.words, words) {
			out = append(out, *e)
		}
	}
	return out
}

func holdsAll(text string, words []string) bool {
	for _, w := range words {
		if out, not := strings.CutPrefix(w, "!"); not {
			if out != "" && strings.Contains(text, out) {
				return false
			}
		} else if !strings.Contains(text, w) {
			return false
		}
	}
	return true
}

func lineOf(m timeline.Mark) eventLine {
	l := eventLine{at: m.At, kind: m.Kind, text: m.Text, role: theme.Text}
	switch m.Kind {
	case "action":
		l.role = theme.Accent
	case "reconcile", "sync":
		l.role = theme.Dim
	case "gap", "fault":
		l.role = theme.Warn
	}
	if m.Node != "" && !strings.Contains(l.text, m.Node) {
		l.text = m.Node + ": " + l.text
	}
	return l
}

// gapMarks are the gaps as events, by their start.
func gapMarks(gaps []timeline.Gap) []timeline.Mark {
	out := make([]timeline.Mark, len(gaps))
	for i, g := range gaps {
		text := string(g.Source) + ": " + g.Why
		if g.To.IsZero() {
			text += ", still open"
		} else {
			text += ", " + lanes.Duration(g.To.Sub(g.From))
		}
		out[i] = timeline.Mark{At: g.From, Kind: "gap", Text: text}
	}
	sort.SliceStable(out, func(i, j int) bool { return out[i].At.Before(out[j].At) })
	return out
}

// source is a list of marks by time, and its place among the lists.
type source struct {
	marks []timeline.Mark
	nth   int
}

// sources is a heap: the list with the newest mark is the first; of marks of the
// same moment that of the later list.
type sources []source

func (s sources) Len() int { return len(s) }
func (s sources) Less(i, j int) bool {
	a, b := s[i].marks[len(s[i].marks)-1].At, s[j].marks[len(s[j].marks)-1].At
	if a.Equal(b) {
		return s[i].nth > s[j].nth
	}
	return a.After(b)
}
func (s sources) Swap(i, j int) { s[i], s[j] = s[j], s[i] }
func (s *sources) Push(x any)   { *s = append(*s, x.(source)) }
func (s *sources) Pop() any {
	old := *s
	x := old[len(old)-1]
	*s = old[:len(old)-1]
	return x
}
