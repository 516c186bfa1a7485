package report

import (
	"time"

	"github.com/kconverge/kconverge/engine/timeline"
)

// Amount is a length of time in milliseconds, or a sum of some: at most MS, at
// least that less WidthMS, and either off by up to ErrorMS, both ways. AtLeast:
// something of it is not over, so that it is more than MS.
type Amount struct {
	MS      float64 `json:"ms"`
	WidthMS float64 `json:"width_ms,omitempty"`
	ErrorMS float64 `json:"error_ms"`
	AtLeast bool    `json:"at_least,omitempty"`
}

// LeftOut counts what a number has nothing of, and says why.
type LeftOut struct {
	Why string `json:"why"`
	N   int    `json:"n"`
}

// Capacity is the least that the nodes could send new connections to in an
// episode. Answering is where and when the endpoints that were routed to and had
// a container running were fewest, Routed where and when those routed to were;
// null when no node's rules were known. Short is where and when most of what a node
// should have routed to could not answer there, null when none ever lacked. Unseen nodes were not known all the time.
type Capacity struct {
	Answering *Low     `json:"answering"`
	Routed    *Low     `json:"routed"`
	Short     *Low     `json:"short"`
	Unseen    []string `json:"unseen"`
}

// Low is a lowest point: from At on, for ForMS. Wanted is what the node should
// have routed to by the slices of that moment, WantedByPods what the pods wanted
// of the whole Service, null for a Service of two families, each of which is
// looked at alone.
type Low struct {
	Node         string    `json:"node"`
	Family       string    `json:"family"`
	At           time.Time `json:"at"`
	ForMS        float64   `json:"for_ms"`
	Answering    int       `json:"answering"`
	Routed       int       `json:"routed"`
	Wanted       int       `json:"wanted"`
	WantedByPods *int      `json:"wanted_by_pods"`
	ErrorMS      float64   `json:"error_ms"`
}

// Unrouted is how long additions were there to be routed to and were not, in pod
// times milliseconds: ToLast sums the times until the last node, Mean the means
// over the nodes.
type Unrouted struct {
	N       int       `json:"n"`
	ToLast  Amount    `json:"to_last"`
	Mean    Amount    `json:"mean"`
	LeftOut []LeftOut `json:"left_out"`
	Unseen  []string  `json:"unseen"`
}

// Advice is the preStop that would have kept endpoints that were removed by their
// pod's termination able to answer until the last node had let go of them. N is
// how many such removals were counted; without one Worst is null. PreStopMS is
// Worst and its error, rounded up to a tenth of a second. P99 is null under 100
// removals.
type Advice struct {
	N         int       `json:"n"`
	Worst     *Amount   `json:"worst"`
	WorstPath string    `json:"worst_path,omitempty"`
	PreStopMS *float64  `json:"prestop_ms"`
	P99       *Amount   `json:"p99"`
	LeftOut   []LeftOut `json:"left_out"`
	Unseen    []string  `json:"unseen"`
}

// Together is an interval in which some node routed to endpoints of several
// revisions of one workload. To is null while one does, and MS so far.
type Together struct {
	Workload  string     `json:"workload"`
	Revisions []string   `json:"revisions"`
	From      time.Time  `json:"from"`
	To        *time.Time `json:"to"`
	MS        float64    `json:"ms"`
	ErrorMS   float64    `json:"error_ms"`
}

func amount(a timeline.Amount) Amount {
	return Amount{MS: ms(a.D), WidthMS: ms(a.Width), ErrorMS: ms(a.Error), AtLeast: a.Growing}
}

func leftOut(list []timeline.LeftOut) []LeftOut {
	out := make([]LeftOut, len(list))
	for i, l := range list {
		out[i] = LeftOut{l.Why, l.N}
	}
	return out
}

func capacity(c timeline.Capacity) *Capacity {
	return &Capacity{Answering: low(c.Answering), Routed: low(c.Routed), Short: low(c.Short), Unseen: list(c.Unseen)}
}

func low(l *timeline.Low) *Low {
	if l == nil {
		return nil
	}
	out := &Low{Node: l.Node, Family: string(l.Family), At: l.At.UTC(), ForMS: ms(l.For),
		Answering: l.Answering, Routed: l.Routed, Wanted: l.Wanted, ErrorMS: ms(l.Error)}
	if l.WantedByPods >= 0 {
		n := l.WantedByPods
		out.WantedByPods = &n
	}
	return out
}

func unrouted(u timeline.Unrouted) *Unrouted {
	return &Unrouted{N: u.N, ToLast: amount(u.ToLast), Mean: amount(u.Mean), LeftOut: leftOut(u.LeftOut), Unseen: list(u.Unseen)}
}

func advice(a timeline.Advice) *Advice {
	out := &Advice{N: a.N, WorstPath: a.WorstPath, LeftOut: leftOut(a.LeftOut), Unseen: list(a.Unseen)}
	if a.N > 0 {
		worst, need := amount(a.Worst), ms(a.Worst.Needed())
		out.Worst, out.PreStopMS = &worst, &need
	}
	if a.P99 != nil {
		p99 := amount(*a.P99)
		out.P99 = &p99
	}
	return out
}

func together(list []timeline.Together, now time.Time) []Together {
	out := make([]Together, len(list))
	for i := range list {
		t := &list[i]
		out[i] = Together{Workload: t.Workload, Revisions: t.Revisions, From: t.From.UTC(), To: timeOrNil(t.To), MS: ms(t.Length(now)), ErrorMS: ms(t.Error)}
	}
	return out
}

// episode is one episode with what it cost. One in which no endpoint came or went
// has no such numbers.
func episode(svc *timeline.Service, e *timeline.Episode, now time.Time) Episode {
	out := Episode{Start: e.Start.UTC(), End: timeOrNil(e.End), Paths: list(e.Paths), Adds: e.Adds, Removes: e.Removes}
	if e.Adds+e.Removes == 0 {
		return out
	}
	to := e.End
	if to.IsZero() {
		to = now
	}
	paths := svc.PathsOf(e.Paths)
	out.Capacity = capacity(svc.Capacity(e.Start, to))
	if e.Adds > 0 {
		out.Unrouted = unrouted(svc.Unrouted(paths, now))
	}
	if e.Removes > 0 {
		out.Advice = advice(svc.Advice(paths))
	}
	out.Together = together(svc.Together(e.Start, to), now)
	return out
}
