package view

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/engine/timeline"
)

// Health is whether all that a statement about now rests on is being told.
type Health struct {
	// Lost are the needed sources that are broken, stopped or in an open gap,
	// by short name, since Since; Why is what the first of them says.
	Lost  []string
	Since time.Time
	Why   string
	// Listing are those that have told before and list anew.
	Listing []string
}

// HealthOf looks at the needed sources. A recording's sources stop when it ends:
// recorded ones that have stopped are not lost.
func HealthOf(snap *timeline.Snapshot, recorded bool) Health {
	var h Health
	open := map[collect.SourceID]*timeline.Gap{}
	for i := range snap.Gaps {
		g := &snap.Gaps[i]
		if old := open[g.Source]; g.To.IsZero() && (old == nil || g.From.Before(old.From)) {
			open[g.Source] = g
		}
	}
	for _, src := range snap.Sources {
		if !src.Needed {
			continue
		}
		gap := open[src.ID]
		bad := src.State == collect.SourceBroken || src.State == collect.SourceForbidden || src.State == collect.SourceStopped && !recorded
		name := shortSource(src.ID)
		switch {
		case bad || gap != nil:
			since, why := src.Vouched, src.Detail
			if gap != nil {
				since = gap.From
				if why == "" || !bad {
					why = gap.Why
				}
			}
			if h.Since.IsZero() || !since.IsZero() && since.Before(h.Since) {
				h.Since = since
			}
			if h.Why == "" {
				h.Why = why
			}
			h.Lost = append(h.Lost, name)
		case src.State == collect.SourceStarting || src.State == collect.SourceListing:
			h.Listing = append(h.Listing, name)
		}
	}
	return h
}

// shortSource is a source's name without its kind: "pods", "slices", "node-3".
func shortSource(id collect.SourceID) string {
	if id == collect.SourceEndpointSlices {
		return "slices"
	}
	_, name, ok := strings.Cut(string(id), "/")
	if !ok {
		return string(id)
	}
	return name
}

// names gives the first two of a list of names, and how many more there are.
func names(list []string) string {
	if len(list) > 3 {
		list = append(slices.Clone(list[:2]), fmt.Sprintf("%d more", len(list)-2))
	}
	return strings.Join(list, ", ")
}

// Mark says in a few words what is not being told, "" when all is well:
// "lost pods, slices since 22:15:53", "not seen: pods" when they never told
// anything, "listing pods". lost tells the two apart.
func (h Health) Mark(loc *time.Location) (text string, lost bool) {
	switch {
	case len(h.Lost) > 0 && h.Since.IsZero():
		return "not seen: " + names(h.Lost), true
	case len(h.Lost) > 0:
		return "lost " + names(h.Lost) + " since " + h.Since.In(loc).Format("15:04:05"), true
	case len(h.Listing) > 0:
		return "listing " + names(h.Listing), false
	}
	return "", false
}
