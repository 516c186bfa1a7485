package export

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// lags are what a format tells of each path and node: the lag in milliseconds, nil when
// there is none.
type lags map[string]*float64

func lagKey(service, path, node string) string { return service + " " + path + " " + node }

func reportLags(d *Document) lags {
	out := lags{}
	for i := range d.Report.Services {
		v := &d.Report.Services[i]
		for k := range v.Paths {
			p := &v.Paths[k]
			if p.Rules == nil {
				continue
			}
			for node, h := range p.Rules.ByNode {
				out[lagKey(v.Namespace+"/"+v.Name, p.ID, node)] = h.LagMS
			}
		}
	}
	return out
}

func csvTable(t *testing.T, d *Document) []map[string]string {
	t.Helper()
	var b bytes.Buffer
	if err := d.CSV(&b); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(&b).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var out []map[string]string
	for _, r := range rows[1:] {
		m := map[string]string{}
		for i, name := range rows[0] {
			m[name] = r[i]
		}
		out = append(out, m)
	}
	return out
}

func csvLags(t *testing.T, d *Document) lags {
	out := lags{}
	for _, r := range csvTable(t, d) {
		if r["node"] != "" {
			out[lagKey(r["namespace"]+"/"+r["service"], r["path"], r["node"])] = parsed(t, r["lag_ms"])
		}
	}
	return out
}

func parsed(t *testing.T, s string) *float64 {
	t.Helper()
	if s == "" {
		return nil
	}
	v, err := strconv.ParseFloat(s, 64)
	if err != nil {
		t.Fatal(err)
	}
	return &v
}

// trace is what an ordinary reader makes of a trace.
type traceFile struct {
	Unit   string           `json:"displayTimeUnit"`
	Events []map[string]any `json:"traceEvents"`
}

func readTrace(t *testing.T, d *Document) traceFile {
	t.Helper()
	var b bytes.Buffer
	if err := d.Trace(&b); err != nil {
		t.Fatal(err)
	}
	var out traceFile
	if err := json.Unmarshal(b.Bytes(), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func traceLags(t *testing.T, d *Document) lags {
	out, process := lags{}, map[float64]string{}
	for _, e := range readTrace(t, d).Events {
		args, _ := e["args"].(map[string]any)
		switch {
		case e["name"] == "process_name":
			process[e["pid"].(float64)] = args["name"].(string)
		case e["cat"] == "hop" && e["ph"] == "b" && args["plane"] != "slices" && args["plane"] != "endpoints v1":
			var lag *float64
			if v, ok := args["lag_ms"].(float64); ok {
				lag = &v
			}
			out[lagKey(process[e["pid"].(float64)], args["path"].(string), args["plane"].(string))] = lag
		}
	}
	return out
}

// otlpSpan is a span as a reader of OTLP's JSON has it.
type otlpSpan struct {
	service, trace, id, parent, name string
	start, end                       int64
	attrs                            map[string]any
}

func readOTLP(t *testing.T, d *Document) (out []otlpSpan) {
	t.Helper()
	var b bytes.Buffer
	if err := d.OTLP(&b); err != nil {
		t.Fatal(err)
	}
	attrs := func(list []attribute) map[string]any {
		m := map[string]any{}
		for _, a := range list {
			switch {
			case a.Value.String != nil:
				m[a.Key] = *a.Value.String
			case a.Value.Double != nil:
				m[a.Key] = *a.Value.Double
			case a.Value.Bool != nil:
				m[a.Key] = *a.Value.Bool
			}
		}
		return m
	}
	for dec := json.NewDecoder(&b); dec.More(); {
		var data tracesData
		if err := dec.Decode(&data); err != nil {
			t.Fatal(err)
		}
		for _, r := range data.ResourceSpans {
			of := attrs(r.Resource.Attributes)
			for _, s := range r.ScopeSpans[0].Spans {
				x := otlpSpan{service: fmt.Sprint(of["k8s.namespace.name"], "/", of["k8s.service.name"]), trace: s.TraceID, id: s.SpanID, parent: s.ParentID, name: s.Name, attrs: attrs(s.Attributes)}
				var e1, e2 error
				x.start, e1 = strconv.ParseInt(s.Start, 10, 64)
				x.end, e2 = strconv.ParseInt(s.End, 10, 64)
				if e1 != nil || e2 != nil {
					t.Fatalf("%q, %q are no times", s.Start, s.End)
				}
				out = append(out, x)
			}
		}
	}
	return out
}

func otlpLags(t *testing.T, d *Document) lags {
	out := lags{}
	for _, s := range readOTLP(t, d) {
		node, ok := s.attrs["kconverge.rules.node"].(string)
		if !ok {
			continue
		}
		var lag *float64
		if v, ok := s.attrs["kconverge.lag_ms"].(float64); ok {
			lag = &v
		}
		out[lagKey(s.service, s.attrs["kconverge.path"].(string), node)] = lag
	}
	return out
}

// TestEveryFormatHasTheReportsLags: each path and node, with the same lag to the last
// digit, and no other.
func TestEveryFormatHasTheReportsLags(t *testing.T) {
	n := 0
	for name, s := range scenarios(t) {
		d := document(t, s)
		want := reportLags(d)
		n += len(want)
		for format, got := range map[string]lags{"csv": csvLags(t, d), "trace": traceLags(t, d), "otlp": otlpLags(t, d)} {
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s as %s (-report +%s):\n%s", name, format, format, diff)
			}
		}
	}
	if n < 100 {
		t.Errorf("only %d paths and nodes were compared", n)
	}
}

// TestHopsAddUpToTheWhole: the way to the slice and the way from there are the lag, and
// the longest lag of a path's slice and nodes is its end.
func TestHopsAddUpToTheWhole(t *testing.T) {
	n := 0
	for name, s := range scenarios(t) {
		d := document(t, s)
		ends, most := map[string]float64{}, map[string]float64{}
		for _, r := range csvTable(t, d) {
			key := r["namespace"] + r["service"] + r["path"]
			if end := parsed(t, r["end_ms"]); end != nil {
				ends[key] = *end
				if _, ok := most[key]; !ok {
					most[key] = math.Inf(-1)
				}
			}
			slice, from, lag := parsed(t, r["slice_lag_ms"]), parsed(t, r["from_slice_ms"]), parsed(t, r["lag_ms"])
			if _, ok := most[key]; ok {
				for _, v := range []*float64{slice, lag} {
					if v != nil {
						most[key] = max(most[key], *v)
					}
				}
			}
			if slice == nil || from == nil || lag == nil {
				continue
			}
			n++
			if got := *slice + *from; math.Abs(got-*lag) > 0.002 { // two cuts to a microsecond
				t.Errorf("%s: %s on %s: %g + %g ms is not %g", name, r["path"], r["node"], *slice, *from, *lag)
			}
		}
		for key, end := range ends {
			if math.Abs(end-most[key]) > 0.001 {
				t.Errorf("%s: %s ends after %g ms, its last hop after %g", name, key, end, most[key])
			}
		}
	}
	if n < 50 {
		t.Errorf("only %d rows have all three", n)
	}
}

// TestASpanIsAsLongAsItsHop compares the times of OTLP's spans with the lags beside them.
func TestASpanIsAsLongAsItsHop(t *testing.T) {
	for name, s := range scenarios(t) {
		d := document(t, s)
		spans := readOTLP(t, d)
		byID, ids := map[string]otlpSpan{}, map[string]bool{}
		for _, x := range spans {
			if ids[x.id] {
				t.Errorf("%s: two spans are %s", name, x.id)
			}
			byID[x.trace+x.id], ids[x.id] = x, true
			if len(x.trace) != 32 || len(x.id) != 16 || x.end < x.start {
				t.Errorf("%s: %+v", name, x)
			}
		}
		for _, x := range spans {
			if x.parent != "" && byID[x.trace+x.parent].id == "" {
				t.Errorf("%s: %q has a parent in no trace of its own", name, x.name)
			}
			for attr, of := range map[string]string{"kconverge.from_slice_ms": "rules", "kconverge.lag_ms": "slices"} {
				plane, _ := x.attrs["kconverge.plane"].(string)
				v, ok := x.attrs[attr].(float64)
				if !ok || plane != of && !(of == "rules" && len(plane) > 6) {
					continue
				}
				if got := float64(x.end-x.start) / 1e6; math.Abs(got-math.Abs(v)) > 0.001 {
					t.Errorf("%s: the span %q takes %g ms, its %s is %g", name, x.name, got, attr, v)
				}
			}
		}
	}
}

// TestJSONIsTheReport: nothing is added to the document that --output json prints, and
// nothing left out.
func TestJSONIsTheReport(t *testing.T) {
	for name, s := range scenarios(t) {
		d := document(t, s)
		var b bytes.Buffer
		if err := d.JSON(&b); err != nil {
			t.Fatal(err)
		}
		want, err := json.Marshal(d.Report)
		if err != nil {
			t.Fatal(err)
		}
		var got bytes.Buffer
		if err := json.Compact(&got, b.Bytes()); err != nil || got.String() != string(want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestRiskAndOfficialNumbersInCSVAreTheReports compares the rest of the numbers.
func TestRiskAndOfficialNumbersInCSVAreTheReports(t *testing.T) {
	for name, s := range scenarios(t) {
		d := document(t, s)
		type numbers struct{ Official, Error, Risk, End *float64 }
		want, got := map[string]numbers{}, map[string]numbers{}
		for i := range d.Report.Services {
			v := &d.Report.Services[i]
			for k := range v.Paths {
				p := &v.Paths[k]
				if p.Rules == nil {
					continue
				}
				for node, h := range p.Rules.ByNode {
					want[lagKey(v.Namespace+"/"+v.Name, p.ID, node)] = numbers{h.OfficialMS, &h.ErrorMS, p.RiskMS.FromTermination, p.EndMS}
				}
			}
		}
		for _, r := range csvTable(t, d) {
			if r["node"] != "" {
				got[lagKey(r["namespace"]+"/"+r["service"], r["path"], r["node"])] = numbers{
					parsed(t, r["official_ms"]), parsed(t, r["error_ms"]), parsed(t, r["risk_from_termination_ms"]), parsed(t, r["end_ms"])}
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if rows := csvTable(t, d); len(rows) < len(want) {
			t.Errorf("%s: %d rows for %v", name, len(rows), len(maps.Clone(want)))
		}
	}
}
