package lanes

import (
	"time"

	"github.com/kconverge/kconverge/engine/timeline"
)

// Class is what one cell of a lane means. Within one cell the highest class
// that was true at any moment of it wins, so that a difference narrower than a
// cell is never lost.
type Class uint8

// Classes, in rising order of importance within each group. The first group
// is for planes, the second for pods, the third for rows of marks.
const (
	Empty   Class = iota // nothing known or nothing there
	Existed              // claimed to have been there; how many endpoints is not known
	Had                  // claimed to have had a number of endpoints; compared with nothing
	Agrees               // had equals wanted
	Blind                // nothing observes the plane
	InGap                // the plane's source lost events or was not watching
	Behind               // had differs from wanted
	Stale                // routed although nothing can answer: behind, and the backend has stopped

	PodStopped
	PodReady
	PodPending
	PodStarting
	PodTerminating
	PodUnready

	Span   // inside an episode
	Point  // something happened here
	Alert  // something went wrong here
	Folded // quiet time that was left out
)

// Difference reports that the class stands for had differing from wanted.
func (c Class) Difference() bool { return c == Behind || c == Stale }

// Cell is one cell of a lane.
type Cell struct {
	Class Class
	// Begins marks the cell in which a pod's phase begins, and the first and
	// last cell of an episode.
	Begins, Ends bool
	// Provisional: later than the watermark, so it may still be taken back.
	Provisional bool
	// Fold: the column stands for folded time, whatever is shown in it.
	Fold bool
	// Claimed: known from an object's own words (1 s precision) or an agent's
	// log, not observed.
	Claimed bool
}

// Text is laid over a lane, starting at column Col. It has the display width
// of its runes; all of them are narrow.
type Text struct {
	Col  int
	Text string
	// Kind tells what it is, so that a drawing can tone it.
	Kind TextKind
}

// TextKind is the kind of a Text.
type TextKind uint8

// Kinds of Text.
const (
	CountText TextKind = iota // how many endpoints from here on
	LagText                   // how long the arrival at its left took
	StaleText                 // how long a stopped backend has been routed
	MarkText                  // an action, an episode
)

// RowKind tells what a row is about.
type RowKind uint8

// Kinds of rows, in the order in which they stand.
const (
	RowActions RowKind = iota
	RowEpisodes
	RowWanted
	RowSteadyPods
	RowPod
	RowSlices
	RowEndpoints
	RowNodeGroup
	RowNode
	RowReconciler
	RowFault       // under the actions
	RowConnections // above the reconciler
)

// Tone says how the right-hand value of a row is to be read. It always goes
// with a word or a sign; a drawing may add a colour.
type Tone uint8

// Tones.
const (
	Plain Tone = iota
	Dim
	Good
	Warn
	Bad
)

// Row is one lane.
type Row struct {
	// Key names the row across pictures: "pod/UID", "rules@node-1".
	Key  string
	Kind RowKind
	// Label, and ShortLabel, if not empty, where that is too wide.
	Label, ShortLabel string
	// Nested rows are drawn under the row before them.
	Nested bool
	Cells  []Cell
	Texts  []Text // by column, never overlapping
	// Right is the state at the cursor: "5 =", "7  +2 stale !"; Short is the
	// same where there is little room: "7 +2 !".
	Right, Short string
	Tone         Tone
}

// Tick is one tick of the axis.
type Tick struct {
	Col   int
	At    time.Time
	Label string // empty for a minor tick
}

// Fold is quiet time that was left out of the picture.
type Fold struct {
	Col, Cols int
	From, To  time.Time
	Label     string // "3m41s"
	// Shown: the label fits on the axis without touching another.
	Shown bool
}

// Axis is the time axis above the lanes.
type Axis struct {
	Ticks []Tick // by column
	Folds []Fold
	// Date is that of the left edge, Zone the time zone: "Nov 29", "UTC".
	Date, Zone string
	// Step is the time between two labelled ticks.
	Step time.Duration
}

// Picture is everything a drawing of one Service's timeline shows.
type Picture struct {
	Service *timeline.Service
	Scale   *Scale
	Axis    Axis
	Rows    []Row
	// Cursor is the instant the right-hand column speaks of, CursorCol its
	// column, -1 when it lies outside.
	Cursor    time.Time
	CursorCol int
	// Quiet tells that some quiet time is folded.
	Quiet bool
}

// Row returns the index of the row with the key, or -1.
func (p *Picture) Row(key string) int {
	for i := range p.Rows {
		if p.Rows[i].Key == key {
			return i
		}
	}
	return -1
}
