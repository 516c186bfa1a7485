package consumers

import (
	"bytes"
	"testing"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// TestOpenTelemetryReadsOurSpans: the collector's own reader takes every line of every
// scenario, loses nothing, and finds the lags where they belong.
func TestOpenTelemetryReadsOurSpans(t *testing.T) {
	type key struct{ path, node string }
	compared := 0
	for name, snap := range scenarios(t) {
		d := document(t, snap)
		got := map[key]float64{}
		spans := map[pcommon.SpanID]ptrace.Span{}
		for line := range bytes.Lines(exported(t, d.OTLP)) {
			traces, err := (&ptrace.JSONUnmarshaler{}).UnmarshalTraces(line)
			if err != nil {
				t.Fatalf("%s: %v\n%s", name, err, line)
			}
			var of pcommon.TraceID
			for i := range traces.ResourceSpans().Len() {
				list := traces.ResourceSpans().At(i).ScopeSpans().At(0).Spans()
				if v, ok := traces.ResourceSpans().At(i).Resource().Attributes().Get("service.name"); !ok || v.Str() != "kconverge" {
					t.Errorf("%s: the resource has no service.name", name)
				}
				for k := range list.Len() {
					s := list.At(k)
					if s.TraceID().IsEmpty() || s.SpanID().IsEmpty() || s.Name() == "" || s.EndTimestamp() < s.StartTimestamp() || s.StartTimestamp() == 0 || s.Kind() != ptrace.SpanKindInternal {
						t.Errorf("%s: %s %s %q %s to %s, %s", name, s.TraceID(), s.SpanID(), s.Name(), s.StartTimestamp(), s.EndTimestamp(), s.Kind())
					}
					if of.IsEmpty() {
						of = s.TraceID()
					}
					if s.TraceID() != of {
						t.Errorf("%s: two traces in a line", name)
					}
					spans[s.SpanID()] = s
					node, ok := s.Attributes().Get("kconverge.rules.node")
					lag, arrived := s.Attributes().Get("kconverge.lag_ms")
					path, _ := s.Attributes().Get("kconverge.path")
					if ok && arrived {
						got[key{path.Str(), node.Str()}] = lag.Double()
					}
				}
			}
		}
		for _, s := range spans {
			if _, ok := spans[s.ParentSpanID()]; !ok && !s.ParentSpanID().IsEmpty() {
				t.Errorf("%s: %q has no parent", name, s.Name())
			}
		}
		for i := range d.Report.Services {
			for _, p := range d.Report.Services[i].Paths {
				if p.Rules == nil {
					continue
				}
				for node, h := range p.Rules.ByNode {
					if h.LagMS == nil {
						continue
					}
					compared++
					if v, ok := got[key{p.ID, node}]; !ok || v != *h.LagMS {
						t.Errorf("%s: %s on %s: the report has %g ms, the span %g (%v)", name, p.ID, node, *h.LagMS, v, ok)
					}
				}
			}
		}
	}
	if compared < 100 {
		t.Errorf("only %d lags were compared", compared)
	}
}
