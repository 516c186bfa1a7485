package lanes

import (
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/kconverge/kconverge/engine/timeline"
)

var podClass = map[timeline.PodPhase]Class{
	timeline.PodPending:     PodPending,
	timeline.PodStarting:    PodStarting,
	timeline.PodReady:       PodReady,
	timeline.PodUnready:     PodUnready,
	timeline.PodTerminating: PodTerminating,
	timeline.PodStopped:     PodStopped,
}

// pods are the lanes of the pods that were there at any time in the window.
// Those that were ready all through it share one row unless they are unfolded,
// and so do, above MaxPods, those that are gone and then those whose last change
// is longest ago.
func (b *builder) pods() []Row {
	var folded, moving []*timeline.PodTrack
	for i := range b.svc.Pods {
		t := &b.svc.Pods[i]
		switch b.presence(t) {
		case absent:
		case unchanged:
			folded = append(folded, t)
		default:
			moving = append(moving, t)
		}
	}
	what := "steady pod"
	if n := len(moving) - max(b.o.MaxPods, 0); b.o.MaxPods != 0 && n > 0 && !b.o.UnfoldPods {
		sort.SliceStable(moving, func(i, j int) bool {
			if x, y := b.gone(moving[i]), b.gone(moving[j]); x != y {
				return x
			}
			return b.lastChange(moving[i]).Before(b.lastChange(moving[j]))
		})
		folded, moving, what = append(folded, moving[:n]...), moving[n:], "pod"
	}
	var rows []Row
	if len(folded) > 0 {
		rows = append(rows, b.foldedPods(folded, what))
		if b.o.UnfoldPods {
			for _, t := range folded {
				rows = append(rows, b.podRow(t))
			}
		}
	}
	sort.SliceStable(moving, func(i, j int) bool { return firstSeen(moving[i]).Before(firstSeen(moving[j])) })
	for _, t := range moving {
		rows = append(rows, b.podRow(t))
	}
	return rows
}

// foldedPods is the one row of several pods. Of what they are within one cell
// the most important is shown.
func (b *builder) foldedPods(tracks []*timeline.PodTrack, what string) Row {
	mark := "▸ "
	if b.o.UnfoldPods {
		mark = "▾ "
	}
	r := Row{Key: "pods/steady", Kind: RowSteadyPods, Label: mark + Plural(len(tracks), what), Cells: b.cells()}
	if short, ok := strings.CutSuffix(what, " pod"); ok {
		r.ShortLabel = mark + strconv.Itoa(len(tracks)) + " " + short
	}
	phases, claimed := map[timeline.PodPhase]int{}, false
	one := b.cells()
	for _, t := range tracks {
		copy(one, b.blank)
		b.podLane(one, t)
		for k, c := range one {
			if c.Begins = false; c.Class > r.Cells[k].Class && c.Class != Folded {
				r.Cells[k] = c
			}
		}
		if c, ok := t.At(b.o.Cursor); ok {
			phases[c.Phase]++
			claimed = claimed || c.Claimed
		}
	}
	r.Right, r.Short = phasesText(phases)
	if claimed {
		r.Right += " claimed"
	}
	r.Tone = Dim
	return r
}

// phasesText counts pods by phase: "4 ready", "4 ready, 1 terminating, 2 gone",
// and in a few characters: "4, 2 gone", "4/7 ready".
func phasesText(n map[timeline.PodPhase]int) (long, short string) {
	ready, all, kinds := strconv.Itoa(n[timeline.PodReady]), n[timeline.PodReady], 0
	long = ready + " ready"
	for _, p := range []timeline.PodPhase{timeline.PodPending, timeline.PodStarting, timeline.PodUnready, timeline.PodTerminating, timeline.PodStopped, timeline.PodGone, timeline.PodUnselected} {
		if n[p] > 0 {
			part := ", " + strconv.Itoa(n[p]) + " " + string(p)
			long, short = long+part, ready+part
			all += n[p]
			kinds++
		}
	}
	if kinds != 1 || len(short) > 10 {
		short = ready + "/" + strconv.Itoa(all) + " ready"
	}
	if kinds == 0 {
		short = ""
	}
	return long, short
}

// gone tells whether a pod is gone as far as the picture has come.
func (b *builder) gone(t *timeline.PodTrack) bool {
	c, ok := t.At(b.o.Now)
	return ok && (c.Phase == timeline.PodGone || c.Phase == timeline.PodUnselected)
}

// lastChange is when a pod last changed, as far as the picture has come.
func (b *builder) lastChange(t *timeline.PodTrack) time.Time {
	for i := len(t.Changes) - 1; i >= 0; i-- {
		if at := t.Changes[i].At; !at.After(b.o.Now) && at.Before(b.scale.To()) {
			return at
		}
	}
	return time.Time{}
}

func firstSeen(t *timeline.PodTrack) time.Time {
	if len(t.Changes) == 0 {
		return time.Time{}
	}
	return t.Changes[0].At
}

type presence uint8

const (
	absent presence = iota
	unchanged
	changing
)

// presence tells whether a pod has anything to show in the window.
func (b *builder) presence(t *timeline.PodTrack) presence {
	from, to := b.scale.From(), b.scale.To()
	if b.o.Now.Before(to) {
		to = b.o.Now
	}
	if to.Before(from) {
		from = to
	}
	i := sort.Search(len(t.Changes), func(i int) bool { return t.Changes[i].At.After(from) })
	first := timeline.PodPhase("")
	if i > 0 {
		first = t.Changes[i-1].Phase
	}
	for ; i < len(t.Changes) && !t.Changes[i].At.After(to); i++ {
		if i == 0 || t.Changes[i].Phase != t.Changes[i-1].Phase {
			return changing
		}
	}
	switch {
	case first == "" || first == timeline.PodGone || first == timeline.PodUnselected:
		return absent
	case first == timeline.PodReady:
		return unchanged
	}
	return changing // steady, but in a state worth a row
}

func (b *builder) podRow(t *timeline.PodTrack) Row {
	r := Row{Key: "pod/" + t.UID, Kind: RowPod, Label: t.Name, Nested: true, Cells: b.cells()}
	b.podLane(r.Cells, t)
	if c, ok := t.At(b.o.Cursor); ok {
		r.Right, r.Tone = string(c.Phase), podTone(c.Phase)
		if c.Claimed {
			r.Right, r.Short, r.Tone = r.Right+" claimed", r.Right, Dim
		}
	}
	return r
}

func podTone(p timeline.PodPhase) Tone {
	switch p {
	case timeline.PodReady:
		return Good
	case timeline.PodUnready, timeline.PodTerminating:
		return Warn
	}
	return Dim
}

// podLane paints a pod's phases. Unlike the state of a plane they do not rank:
// within one cell the latest begins, and its beginning is marked. A phase that
// begins and ends within one cell keeps the cell when the next is drawn beside
// it.
func (b *builder) podLane(cells []Cell, t *timeline.PodTrack) {
	for i := inForce(len(t.Changes), b.scale.From(), func(i int) time.Time { return t.Changes[i].At }); i < len(t.Changes); i++ {
		c := &t.Changes[i]
		class, ok := podClass[c.Phase]
		if !ok {
			continue
		}
		to := b.o.Now
		if i+1 < len(t.Changes) && t.Changes[i+1].At.Before(to) {
			to = t.Changes[i+1].At
		}
		x, y, ok := b.scale.columns(c.At, to)
		if !ok {
			continue
		}
		begins := b.scale.Col(c.At) == x && !c.At.Before(b.scale.From()) && (i == 0 || t.Changes[i-1].Phase != c.Phase)
		// The cell in which the phase before it began is not taken away when
		// this one goes on for longer.
		if x < y && cells[x].Begins {
			x++
		}
		for k := x; k <= y; k++ {
			if cells[k].Class == Folded {
				continue
			}
			cells[k] = Cell{Class: class, Claimed: c.Claimed, Begins: begins && k == x, Provisional: k >= b.provisional}
		}
	}
}
