package export

import (
	"bufio"
	"encoding/json"
	"io"
	"slices"
	"time"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/engine/report"
)

// traceEvent is one of Chrome's trace events. Times are microseconds since the start of
// the Document: since 1970 they would not fit a JSON number with all their digits.
type traceEvent struct {
	Name string         `json:"name"`
	Cat  string         `json:"cat,omitempty"`
	Ph   string         `json:"ph"`
	TS   float64        `json:"ts"`
	Dur  *float64       `json:"dur,omitempty"`
	PID  int            `json:"pid"`
	TID  int            `json:"tid"`
	ID   string         `json:"id,omitempty"`
	BP   string         `json:"bp,omitempty"`
	S    string         `json:"s,omitempty"`
	Args map[string]any `json:"args,omitempty"`
}

// Trace writes Chrome's trace events (the JSON object format) for Perfetto, speedscope
// and chrome://tracing: a process for each Service, a thread for each of its planes. A
// path and each of its hops are asynchronous spans, since they overlap; an arrival is a
// short slice on its plane's thread, and flows lead from a path's origin to the slice's
// arrival and on to each node's.
func (d *Document) Trace(w io.Writer) error {
	b := bufio.NewWriter(w)
	if _, err := b.WriteString(`{"displayTimeUnit":"ms","otherData":`); err != nil {
		return err
	}
	other, err := json.Marshal(map[string]string{
		"source": collect.Plain(d.Report.Source.Kind + " " + d.Report.Source.Name), "start": d.From().Format(time.RFC3339Nano),
		"as_of": d.Report.AsOf.Format(time.RFC3339Nano), "tool": d.Tool,
	})
	if err != nil {
		return err
	}
	b.Write(other)
	b.WriteString(`,"traceEvents":[`)
	first := true
	for i := range d.Report.Services {
		t := &tracer{d: d, v: &d.Report.Services[i], pid: i + 1, threads: map[string]int{}, marks: map[int]map[time.Time]*traceMark{}}
		for _, e := range t.events() {
			line, err := json.Marshal(e)
			if err != nil {
				return err
			}
			if !first {
				b.WriteByte(',')
			}
			first = false
			b.WriteByte('\n')
			b.Write(line)
		}
	}
	b.WriteString("\n]}\n")
	return b.Flush()
}

// tracer makes the events of one Service.
type tracer struct {
	d       *Document
	v       *report.Service
	pid     int
	threads map[string]int
	names   []string
	out     []traceEvent
	marks   map[int]map[time.Time]*traceMark
}

// traceMark is the slice of all that arrived on a thread at one time: slices of one
// thread must not cross.
type traceMark struct{ paths []string }

func (t *tracer) events() []traceEvent {
	t.name("process_name", 0, collect.Plain(t.v.Namespace+"/"+t.v.Name))
	pods := t.thread("pods")
	t.thread("slices")
	t.thread("endpoints v1")
	for k := range t.v.Paths {
		t.path(pods, &t.v.Paths[k])
	}
	t.episodes()
	t.actions()
	t.slices()
	for i, n := range t.names {
		t.name("thread_name", i+1, n)
		t.out = append(t.out, traceEvent{Name: "thread_sort_index", Ph: "M", PID: t.pid, TID: i + 1, Args: map[string]any{"sort_index": i + 1}})
	}
	return t.out
}

func (t *tracer) name(what string, tid int, name string) {
	t.out = append(t.out, traceEvent{Name: what, Ph: "M", PID: t.pid, TID: tid, Args: map[string]any{"name": name}})
}

func (t *tracer) thread(name string) int {
	if id, ok := t.threads[name]; ok {
		return id
	}
	t.names = append(t.names, collect.Plain(name))
	t.threads[name] = len(t.names)
	return len(t.names)
}

func (t *tracer) ts(at time.Time) float64 { return float64(at.Sub(t.d.From()).Nanoseconds()) / 1000 }

// mark notes that a path arrived on a thread.
func (t *tracer) mark(tid int, at time.Time, path string) {
	if t.marks[tid] == nil {
		t.marks[tid] = map[time.Time]*traceMark{}
	}
	m := t.marks[tid][at]
	if m == nil {
		m = &traceMark{}
		t.marks[tid][at] = m
	}
	m.paths = append(m.paths, path)
}

// span is an asynchronous one. What came before its origin (two watches have no mutual
// order) begins at its arrival; its lag is in the arguments as it is.
func (t *tracer) span(cat, id, name string, tid int, from, to time.Time, args map[string]any) {
	if to.Before(from) {
		from, to = to, from
	}
	name = collect.Plain(name)
	t.out = append(t.out,
		traceEvent{Name: name, Cat: cat, Ph: "b", TS: t.ts(from), PID: t.pid, TID: tid, ID: id, Args: args},
		traceEvent{Name: name, Cat: cat, Ph: "e", TS: t.ts(to), PID: t.pid, TID: tid, ID: id})
}

func (t *tracer) path(pods int, p *report.Path) {
	who := report.PathName(p)
	t.span("path", p.ID, who, pods, p.Origin.At, t.d.end(p), map[string]any{
		"path": p.ID, "op": p.Op, "cause": p.Cause, "by": collect.Plain(p.By), "status": p.Status, "ip": p.Endpoint.IP, "node": collect.Plain(p.Endpoint.Node), "end_ms": p.EndMS,
	})
	t.mark(pods, p.Origin.At, who)
	var slice *time.Time
	if s := p.Slice; s != nil {
		t.hop(p, "slices", "slice", s, p.Origin.At, hopArgs(p, "slices", s))
		slice = s.At
	}
	if e := p.Endpoints; e != nil {
		t.hop(p, "endpoints v1", "endpoints v1", e, p.Origin.At, hopArgs(p, "endpoints v1", e))
	}
	if p.Rules == nil {
		return
	}
	from := p.Origin.At
	if slice != nil {
		from = *slice
	}
	for _, node := range sortedKeys(p.Rules.ByNode) {
		h := p.Rules.ByNode[node]
		args := hopArgs(p, node, &h.Hop)
		args["from_slice_ms"], args["official_ms"] = h.FromSliceMS, h.OfficialMS
		t.hop(p, node, "rules", &h.Hop, from, args)
		if h.At != nil {
			t.flow(p.ID+"/"+node, pods, p.Origin.At, slice, t.thread(node), *h.At)
		}
	}
}

func hopArgs(p *report.Path, plane string, h *report.Hop) map[string]any {
	return map[string]any{"path": p.ID, "plane": collect.Plain(plane), "lag_ms": h.LagMS, "error_ms": h.ErrorMS, "status": h.Status, "note": collect.Plain(h.Note), "not_before": h.NotBefore}
}

// hop is a span on the way to a plane, and the mark of its arrival.
func (t *tracer) hop(p *report.Path, thread, what string, h *report.Hop, from time.Time, args map[string]any) {
	tid, to := t.thread(thread), from
	switch {
	case h.At != nil:
		to = *h.At
		t.mark(tid, to, report.PathName(p))
	case h.Status == "open":
		to = later(from, t.d.Snapshot.Now)
	}
	name := what
	if what == "rules" {
		name = thread
	}
	t.span("hop", p.ID+"/"+thread, name+": "+report.PathName(p), tid, from, to, args)
}

// flow leads from the origin through the slice's arrival, when that is on the way, to the
// node's. Arrows lead on in time only.
func (t *tracer) flow(id string, pods int, origin time.Time, slice *time.Time, node int, at time.Time) {
	if at.Before(origin) {
		return
	}
	t.out = append(t.out, traceEvent{Name: "path", Cat: "flow", Ph: "s", TS: t.ts(origin), PID: t.pid, TID: pods, ID: id})
	if slice != nil && !slice.Before(origin) && !at.Before(*slice) {
		t.out = append(t.out, traceEvent{Name: "path", Cat: "flow", Ph: "t", TS: t.ts(*slice), PID: t.pid, TID: t.thread("slices"), ID: id, BP: "e"})
	}
	t.out = append(t.out, traceEvent{Name: "path", Cat: "flow", Ph: "f", TS: t.ts(at), PID: t.pid, TID: node, ID: id, BP: "e"})
}

func (t *tracer) episodes() {
	tid := t.thread("episodes")
	for i := range t.v.Episodes {
		e := &t.v.Episodes[i]
		to := t.d.Snapshot.Now
		if e.End != nil {
			to = *e.End
		}
		t.span("episode", "episode/"+e.Start.Format(time.RFC3339Nano), episodeName(e), tid, e.Start, later(e.Start, to),
			map[string]any{"adds": e.Adds, "removes": e.Removes, "paths": len(e.Paths), "over": e.End != nil})
	}
}

// actions are what somebody asked for, as instants of the whole process.
func (t *tracer) actions() {
	svc := t.d.service(t.v)
	if svc == nil {
		return
	}
	tid := t.thread("actions")
	for _, m := range svc.Marks {
		if m.Kind == "action" && !m.At.Before(t.d.From()) && !m.At.After(t.d.To()) {
			t.out = append(t.out, traceEvent{Name: collect.Plain(m.Text), Cat: "action", Ph: "i", TS: t.ts(m.At), PID: t.pid, TID: tid, S: "p"})
		}
	}
}

// slices are the arrivals of each thread; each ends before the next begins.
func (t *tracer) slices() {
	const longest = 1000.0 // µs
	for _, tid := range sortedInts(t.marks) {
		at := make([]time.Time, 0, len(t.marks[tid]))
		for m := range t.marks[tid] {
			at = append(at, m)
		}
		slices.SortFunc(at, time.Time.Compare)
		for i, m := range at {
			dur := longest
			if i+1 < len(at) {
				dur = min(dur, t.ts(at[i+1])-t.ts(m))
			}
			paths := t.marks[tid][m].paths
			name := paths[0]
			if len(paths) > 1 {
				name = counted(len(paths), "change")
			}
			t.out = append(t.out, traceEvent{Name: collect.Plain(name), Cat: "arrival", Ph: "X", TS: t.ts(m), Dur: &dur, PID: t.pid, TID: tid, Args: map[string]any{"changes": plainAll(paths)}})
		}
	}
}
