package export

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"strconv"
	"time"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/engine/report"
)

// The JSON of OTLP's TracesData (opentelemetry-proto, "JSON Protobuf Encoding"): ids are
// hexadecimal and not base64 as elsewhere in protobuf's JSON, 64-bit numbers are strings,
// enums numbers.
type (
	tracesData struct {
		ResourceSpans []resourceSpans `json:"resourceSpans"`
	}
	resourceSpans struct {
		Resource struct {
			Attributes []attribute `json:"attributes"`
		} `json:"resource"`
		ScopeSpans []scopeSpans `json:"scopeSpans"`
	}
	scopeSpans struct {
		Scope struct {
			Name    string `json:"name"`
			Version string `json:"version,omitempty"`
		} `json:"scope"`
		Spans []span `json:"spans"`
	}
	span struct {
		TraceID    string      `json:"traceId"`
		SpanID     string      `json:"spanId"`
		ParentID   string      `json:"parentSpanId,omitempty"`
		Name       string      `json:"name"`
		Kind       int         `json:"kind"`
		Start      string      `json:"startTimeUnixNano"`
		End        string      `json:"endTimeUnixNano"`
		Attributes []attribute `json:"attributes"`
		Status     struct{}    `json:"status"`
	}
	attribute struct {
		Key   string   `json:"key"`
		Value anyValue `json:"value"`
	}
	anyValue struct {
		String *string  `json:"stringValue,omitempty"`
		Double *float64 `json:"doubleValue,omitempty"`
		Bool   *bool    `json:"boolValue,omitempty"`
	}
)

// spanInternal is SPAN_KIND_INTERNAL.
const spanInternal = 1

// OTLP writes OpenTelemetry spans: a TracesData object for each trace, one a line, as
// the collector's file exporter and otlpjsonfile receiver have it. An episode is a trace, each of its paths
// a span in it, each hop a span in that; a path in no episode is a trace of its own. Ids
// are the same whenever the same is exported again.
func (d *Document) OTLP(w io.Writer) error {
	b := bufio.NewWriter(w)
	enc := json.NewEncoder(b)
	for i := range d.Report.Services {
		o := &otlp{d: d, v: &d.Report.Services[i]}
		for _, spans := range o.traces() {
			if err := enc.Encode(o.data(spans)); err != nil {
				return err
			}
		}
	}
	return b.Flush()
}

// otlp makes the traces of one Service.
type otlp struct {
	d *Document
	v *report.Service
}

func (o *otlp) traces() (out [][]span) {
	paths := make(map[string]*report.Path, len(o.v.Paths))
	for i := range o.v.Paths {
		paths[o.v.Paths[i].ID] = &o.v.Paths[i]
	}
	told := map[string]bool{}
	for i := range o.v.Episodes {
		e := &o.v.Episodes[i]
		trace := o.id(16, "episode", e.Start.Format(time.RFC3339Nano))
		root := span{TraceID: trace, SpanID: o.id(8, "episode", e.Start.Format(time.RFC3339Nano)), Name: "episode " + episodeName(e), Kind: spanInternal}
		end := later(e.Start, o.d.Snapshot.Now)
		if e.End != nil {
			end = *e.End
		}
		root.set(e.Start, end)
		root.Attributes = attributes{}.truth("kconverge.open", e.End == nil).
			number("kconverge.adds", float64(e.Adds)).number("kconverge.removes", float64(e.Removes))
		spans := []span{root}
		for _, id := range e.Paths {
			if p := paths[id]; p != nil && !told[id] {
				told[id] = true
				spans = append(spans, o.path(p, trace, root.SpanID)...)
			}
		}
		out = append(out, spans)
	}
	for i := range o.v.Paths {
		if p := &o.v.Paths[i]; !told[p.ID] {
			out = append(out, o.path(p, o.id(16, "path", p.ID), ""))
		}
	}
	return out
}

func (o *otlp) path(p *report.Path, trace, parent string) []span {
	s := span{TraceID: trace, SpanID: o.id(8, "path", p.ID), ParentID: parent, Name: collect.Plain(report.PathName(p)), Kind: spanInternal}
	s.set(p.Origin.At, o.d.end(p))
	s.Attributes = attributes{}.text("kconverge.path", p.ID).text("kconverge.op", p.Op).text("kconverge.cause", p.Cause).text("kconverge.by", p.By).
		text("kconverge.status", p.Status).text("k8s.pod.name", p.Endpoint.Pod).text("k8s.pod.uid", p.Endpoint.UID).text("k8s.node.name", p.Endpoint.Node).
		text("kconverge.endpoint.ip", p.Endpoint.IP).maybe("kconverge.end_ms", p.EndMS).
		maybe("kconverge.risk.from_termination_ms", p.RiskMS.FromTermination).maybe("kconverge.risk.from_exit_ms", p.RiskMS.FromExit)
	out := []span{s}
	from := p.Origin.At
	if p.Slice != nil {
		out = append(out, o.hop(p, trace, s.SpanID, "slices", "slice", p.Origin.At, p.Slice, nil))
		if p.Slice.At != nil {
			from = *p.Slice.At
		}
	}
	if p.Endpoints != nil {
		out = append(out, o.hop(p, trace, s.SpanID, "endpoints", "endpoints v1", p.Origin.At, p.Endpoints, nil))
	}
	if p.Rules != nil {
		for _, node := range sortedKeys(p.Rules.ByNode) {
			h := p.Rules.ByNode[node]
			more := attributes{}.text("kconverge.rules.node", node).maybe("kconverge.from_slice_ms", h.FromSliceMS).maybe("kconverge.official_ms", h.OfficialMS)
			out = append(out, o.hop(p, trace, s.SpanID, "rules@"+node, "rules "+node, from, &h.Hop, more))
		}
	}
	return out
}

func (o *otlp) hop(p *report.Path, trace, parent, plane, name string, from time.Time, h *report.Hop, more attributes) span {
	s := span{TraceID: trace, SpanID: o.id(8, "path", p.ID, plane), ParentID: parent, Name: collect.Plain(name), Kind: spanInternal}
	to := from
	switch {
	case h.At != nil:
		to = *h.At
	case h.Status == "open":
		to = later(from, o.d.Snapshot.Now)
	}
	s.set(from, to)
	s.Attributes = attributes{}.text("kconverge.path", p.ID).text("kconverge.plane", plane).text("kconverge.status", h.Status).maybe("kconverge.lag_ms", h.LagMS).
		number("kconverge.error_ms", h.ErrorMS).text("kconverge.note", h.Note)
	if h.NotBefore != nil {
		s.Attributes = attributes(s.Attributes).text("kconverge.not_before", h.NotBefore.Format(time.RFC3339Nano))
	}
	s.Attributes = append(s.Attributes, more...)
	return s
}

// set sets the times; a span may not end before it begins, though an arrival may be seen
// before its origin. The lag is among the attributes as it is.
func (s *span) set(from, to time.Time) {
	if to.Before(from) {
		from, to = to, from
	}
	s.Start, s.End = strconv.FormatInt(from.UnixNano(), 10), strconv.FormatInt(to.UnixNano(), 10)
}

// id makes an id of n bytes of the names of what it is for.
func (o *otlp) id(n int, names ...string) string {
	h := sha256.New()
	for _, s := range append([]string{o.d.Report.Source.Kind, o.d.Report.Source.Name, o.d.Snapshot.Session.Started.UTC().Format(time.RFC3339Nano), o.v.Namespace, o.v.Name}, names...) {
		io.WriteString(h, strconv.Itoa(len(s))+":"+s)
	}
	return hex.EncodeToString(h.Sum(nil)[:n])
}

func (o *otlp) data(spans []span) tracesData {
	var r resourceSpans
	r.Resource.Attributes = attributes{}.text("service.name", "kconverge").text("k8s.namespace.name", o.v.Namespace).text("k8s.service.name", o.v.Name).
		text("kconverge.source.kind", o.d.Report.Source.Kind).text("kconverge.source.name", o.d.Report.Source.Name)
	var s scopeSpans
	s.Scope.Name, s.Scope.Version, s.Spans = "kconverge", o.d.Tool, spans
	r.ScopeSpans = []scopeSpans{s}
	return tracesData{[]resourceSpans{r}}
}

type attributes []attribute

// text adds one that is not empty.
func (a attributes) text(key, v string) attributes {
	if v = collect.Plain(v); v == "" {
		return a
	}
	return append(a, attribute{key, anyValue{String: &v}})
}

func (a attributes) number(key string, v float64) attributes {
	return append(a, attribute{key, anyValue{Double: &v}})
}

// maybe adds a number that is known.
func (a attributes) maybe(key string, v *float64) attributes {
	if v == nil {
		return a
	}
	return a.number(key, *v)
}

func (a attributes) truth(key string, v bool) attributes {
	return append(a, attribute{key, anyValue{Bool: &v}})
}
