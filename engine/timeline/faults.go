package timeline

import (
	"slices"
	"time"

	"github.com/kconverge/kconverge/collect"
)

// Fault is an interval in which a fault of the lab was in force.
type Fault struct {
	Name, Amount string
	// Target is what it was limited to; empty for no limit.
	Target string
	By     string
	From   time.Time
	// To is zero while it is in force.
	To time.Time
}

// Text is how people write it: "sync-delay 5s node-2".
func (f *Fault) Text() string {
	return (&collect.Fault{Name: f.Name, Amount: f.Amount, Target: f.Target}).Text()
}

// onFault takes that a fault began or ended. One that is refused is a mark.
func (ch *change) onFault() {
	p := ch.e.Payload.(*collect.Fault)
	if p.Refused != "" {
		ch.m.mark(Mark{At: ch.at, Kind: "fault", Text: "refused: " + p.Refused, Step: p})
		return
	}
	faults := ch.m.faults
	open := slices.IndexFunc(faults, func(f Fault) bool { return f.To.IsZero() && f.Name == p.Name && f.Target == p.Target })
	text := p.Text()
	switch {
	case p.Ended && open < 0:
		return // it began before what is kept
	case p.Ended:
		text += " ended"
	case open >= 0 && faults[open].Amount == p.Amount:
		return // said again, at the head of a recording
	}
	// Snapshots share the list, so it is made anew.
	ch.m.faults = slices.Clone(faults)
	if open >= 0 {
		ch.m.faults[open].To = ch.at
	}
	if !p.Ended {
		from := ch.at
		if !p.Since.IsZero() {
			from = p.Since.Round(0).UTC()
		}
		ch.m.faults = append(ch.m.faults, Fault{Name: p.Name, Amount: p.Amount, Target: p.Target, By: p.By, From: from})
	}
	ch.m.mark(Mark{At: ch.at, Kind: "fault", Text: text, Step: p})
}

// retainFaults forgets those that ended before cut.
func (m *Model) retainFaults(cut time.Time) {
	gone := func(f Fault) bool { return !f.To.IsZero() && f.To.Before(cut) }
	if slices.ContainsFunc(m.faults, gone) {
		m.faults = slices.DeleteFunc(slices.Clone(m.faults), gone)
	}
}
