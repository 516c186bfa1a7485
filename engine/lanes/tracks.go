package lanes

import (
	"fmt"
	"slices"
	"sort"
	"strconv"
	"time"

	"github.com/kconverge/kconverge/engine/timeline"
)

// Track is a lane in time instead of columns, for drawings that choose their scale
// later. A Picture's cell shows the highest class of the stretches that touch it, but
// for pods, of which it shows the latest.
type Track struct {
	Key       string
	Kind      RowKind
	Label     string
	Stretches []Stretch // by start
	Arrivals  []timeline.Arrival
}

// Stretch is a time in which a lane meant one thing.
type Stretch struct {
	From, To time.Time
	Class    Class
	Claimed  bool
	// Count is how many endpoints there were, -1 when that is not what the lane tells.
	Count int
	// Text is the state in words, Note what the plane's content was called.
	Text, Note string
}

// tracker collects the tracks of one Service.
type tracker struct {
	snap     *timeline.Snapshot
	svc      *timeline.Service
	from, to time.Time
}

// Tracks are the lanes of a Service from one time to another. Above maxNodes only the
// nodes that differed longest have one; left is how many have none.
func Tracks(snap *timeline.Snapshot, svc *timeline.Service, from, to time.Time, maxNodes int) (tracks []Track, left int) {
	t := &tracker{snap, svc, from, to}
	tracks = append(tracks, t.actions(), t.episodes(), t.wanted())
	for i := range svc.Pods {
		if p := t.pod(&svc.Pods[i]); len(p.Stretches) > 0 {
			tracks = append(tracks, p)
		}
	}
	if svc.Slices != nil {
		tracks = append(tracks, t.plane(svc.Slices, RowSlices, fmt.Sprintf("slices (%d)", len(svc.SliceList))))
	}
	if svc.Endpoints != nil {
		tracks = append(tracks, t.plane(svc.Endpoints, RowEndpoints, "endpoints v1"))
	}
	if !svc.RoutedByProxy {
		return tracks, 0
	}
	planes, left := t.nodes(maxNodes)
	for _, p := range planes {
		tracks = append(tracks, t.plane(p, RowNode, p.ID.Node))
	}
	return tracks, left
}

// nodes are the planes that get a track.
func (t *tracker) nodes(most int) (out []*timeline.Plane, left int) {
	out = slices.Clone(t.svc.Rules.All()) // which are everybody's
	if len(out) <= most {
		return out, 0
	}
	differed := make(map[*timeline.Plane]time.Duration, len(out))
	for _, p := range out {
		for i := range p.Changes {
			if c := &p.Changes[i]; classOf(c).Difference() {
				from, to := t.clip(c.At, t.next(p.Changes, i))
				differed[p] += max(0, to.Sub(from))
			}
		}
	}
	sort.SliceStable(out, func(i, j int) bool { return differed[out[i]] > differed[out[j]] })
	left = len(out) - most
	out = out[:most]
	sort.SliceStable(out, func(i, j int) bool { return out[i].ID.Node < out[j].ID.Node })
	return out, left
}

func (t *tracker) next(changes []timeline.PlaneChange, i int) time.Time {
	if i+1 < len(changes) {
		return changes[i+1].At
	}
	return t.to
}

func (t *tracker) clip(from, to time.Time) (time.Time, time.Time) {
	if from.Before(t.from) {
		from = t.from
	}
	if to.After(t.to) {
		to = t.to
	}
	return from, to
}

// add appends the part of a stretch that lies within the time; one that lasted no time
// is none, as in a Picture.
func (t *tracker) add(out []Stretch, s Stretch) []Stretch {
	if s.From, s.To = t.clip(s.From, s.To); s.From.Before(s.To) {
		return append(out, s)
	}
	return out
}

func (t *tracker) plane(p *timeline.Plane, kind RowKind, label string) Track {
	out := Track{Key: p.ID.String(), Kind: kind, Label: label}
	if p.Past != nil {
		for i, c := range p.Past.Changes {
			to := p.Past.Until
			if i+1 < len(p.Past.Changes) {
				to = p.Past.Changes[i+1].At
			}
			text, _, _ := pastState(c)
			n := -1
			if c.Kind == timeline.PastHad {
				n = c.Have
			}
			out.Stretches = t.add(out.Stretches, Stretch{From: c.At, To: to, Class: pastClass(c.Kind), Claimed: true, Count: n, Text: text, Note: c.Note})
		}
	}
	for i, c := range p.Changes {
		text, _, _ := stateText(c)
		n := c.Have
		if c.Knowledge != timeline.Known {
			n = -1
		}
		out.Stretches = t.add(out.Stretches, Stretch{From: c.At, To: t.next(p.Changes, i), Class: classOf(&c), Count: n, Text: text, Note: c.Note})
	}
	for _, a := range p.Arrivals {
		if !a.At.Before(t.from) && !a.At.After(t.to) {
			out.Arrivals = append(out.Arrivals, a)
		}
	}
	return out
}

func (t *tracker) pod(p *timeline.PodTrack) Track {
	out := Track{Key: "pod/" + p.UID, Kind: RowPod, Label: p.Name}
	for i, c := range p.Changes {
		class, ok := podClass[c.Phase]
		if !ok {
			continue
		}
		to := t.to
		if i+1 < len(p.Changes) {
			to = p.Changes[i+1].At
		}
		text := string(c.Phase)
		if c.Claimed {
			text += ", claimed"
		}
		out.Stretches = t.add(out.Stretches, Stretch{From: c.At, To: to, Class: class, Claimed: c.Claimed, Count: -1, Text: text, Note: p.Node})
	}
	return out
}

func (t *tracker) wanted() Track {
	out := Track{Key: "wanted", Kind: RowWanted, Label: "wanted"}
	for i, c := range t.svc.Wanted {
		to := t.to
		if i+1 < len(t.svc.Wanted) {
			to = t.svc.Wanted[i+1].At
		}
		out.Stretches = t.add(out.Stretches, Stretch{From: c.At, To: to, Class: Agrees, Count: c.N, Text: strconv.Itoa(c.N) + " wanted"})
	}
	return out
}

func (t *tracker) episodes() Track {
	out := Track{Key: "episodes", Kind: RowEpisodes, Label: "episodes"}
	for _, e := range t.svc.Episodes {
		end := e.End
		if end.IsZero() {
			end = t.to
		}
		out.Stretches = t.add(out.Stretches, Stretch{From: e.Start, To: end, Class: Span, Count: -1, Text: EpisodeText(e, t.snap.Now), Note: CapacityText(t.svc, e, t.snap.Now)})
	}
	return out
}

// actions are moments: their stretches end where they begin.
func (t *tracker) actions() Track {
	out := Track{Key: "actions", Kind: RowActions, Label: "actions"}
	for _, m := range marksOf(t.snap, t.svc, "action", t.from, t.to) {
		out.Stretches = append(out.Stretches, Stretch{From: m.At, To: m.At, Class: Point, Count: -1, Text: m.Text})
	}
	return out
}

var classNames = [...]string{
	Empty: "empty", Existed: "existed", Had: "had", Agrees: "agrees", Blind: "blind", InGap: "gap", Behind: "behind", Stale: "stale",
	PodStopped: "stopped", PodReady: "ready", PodPending: "pending", PodStarting: "starting", PodTerminating: "terminating", PodUnready: "unready",
	Span: "span", Point: "point", Alert: "alert", Folded: "folded",
}

// String is the class in a word.
func (c Class) String() string {
	if int(c) < len(classNames) {
		return classNames[c]
	}
	return strconv.Itoa(int(c))
}
