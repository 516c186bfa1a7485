package export

import (
	"time"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/engine/lanes"
	"github.com/kconverge/kconverge/engine/report"
	"github.com/kconverge/kconverge/engine/timeline"
)

// What a page has of each Service; more is counted.
const (
	pageNodes   = 200
	pageChanges = 500
	pageMatrix  = 300 // nodes, and endpoints
)

// The data of a page. Times are milliseconds since its start, which is Start.
type (
	page struct {
		Tool     string           `json:"tool"`
		Source   string           `json:"source"`
		Details  []string         `json:"details"`
		Start    int64            `json:"start"` // milliseconds since 1970
		End      float64          `json:"end"`
		AsOf     *float64         `json:"asOf"`
		Services []pageService    `json:"services"`
		Findings []report.Finding `json:"findings"`
		Gaps     []pageGap        `json:"gaps"`
	}
	pageService struct {
		Name    string       `json:"name"`
		State   string       `json:"state"`
		Advice  string       `json:"advice,omitempty"`
		Tracks  []pageTrack  `json:"tracks"`
		Left    int          `json:"left"` // nodes without a track
		Changes []pageChange `json:"changes"`
		Earlier int          `json:"earlier"` // changes before those
		Matrix  *pageTable   `json:"matrix"`
	}
	pageTrack struct {
		Key      string        `json:"key"`
		Kind     string        `json:"kind"`
		Label    string        `json:"label"`
		Spans    []pageSpan    `json:"spans"`
		Arrivals []pageArrival `json:"arrivals,omitempty"`
	}
	pageSpan struct {
		From    float64 `json:"a"`
		To      float64 `json:"b"`
		Class   string  `json:"c"`
		Claimed bool    `json:"claimed,omitempty"`
		Count   *int    `json:"n,omitempty"`
		Text    string  `json:"t,omitempty"`
		Note    string  `json:"note,omitempty"`
	}
	pageArrival struct {
		At      float64 `json:"at"`
		LagMS   float64 `json:"lag"`
		ErrorMS float64 `json:"err"`
		Paths   int     `json:"n"`
	}
	pageChange struct {
		ID        string    `json:"id"`
		Name      string    `json:"name"`
		Cause     string    `json:"cause"`
		By        string    `json:"by,omitempty"`
		Status    string    `json:"status"`
		At        float64   `json:"at"`
		EndMS     *float64  `json:"ms"`
		ErrorMS   float64   `json:"err"`
		AtMost    bool      `json:"atMost,omitempty"`
		Missing   []string  `json:"missing,omitempty"`
		IP        string    `json:"ip,omitempty"`
		Node      string    `json:"node,omitempty"`
		Risk      *float64  `json:"risk"`
		Bars      []pageBar `json:"bars"`
		Sentences []string  `json:"sentences"`
	}
	pageBar struct {
		Label  string  `json:"label"`
		Depth  int     `json:"depth"`
		Kind   string  `json:"kind"`
		From   float64 `json:"a"`
		To     float64 `json:"b"`
		Took   string  `json:"took"`
		Share  int     `json:"share"`
		Usual  string  `json:"usual,omitempty"`
		Note   string  `json:"note,omitempty"`
		AtMost bool    `json:"atMost,omitempty"`
	}
	pageGap struct {
		Source string   `json:"source"`
		From   float64  `json:"a"`
		To     *float64 `json:"b"`
		Why    string   `json:"why"`
	}
)

var rowKinds = map[lanes.RowKind]string{
	lanes.RowActions: "actions", lanes.RowEpisodes: "episodes", lanes.RowWanted: "wanted", lanes.RowPod: "pod",
	lanes.RowSlices: "slices", lanes.RowEndpoints: "endpoints", lanes.RowNode: "node",
}

var barKinds = map[lanes.BarKind]string{
	lanes.BarPoint: "point", lanes.BarWork: "work", lanes.BarProbe: "probe", lanes.BarNode: "node", lanes.BarSlowest: "slowest",
	lanes.BarOpen: "open", lanes.BarUnknown: "unknown", lanes.BarClaimed: "claimed", lanes.BarAfter: "after",
}

// ms is a time of the page.
func (d *Document) ms(t time.Time) float64 {
	return float64(t.Sub(d.pageStart()).Microseconds()) / 1000
}

func (d *Document) pageStart() time.Time { return d.From().Truncate(time.Millisecond) }

func (d *Document) page() page {
	r := d.Report
	p := page{
		Tool: collect.Plain(d.Tool), Source: collect.Plain(r.Source.Kind + " " + r.Source.Name), Start: d.pageStart().UnixMilli(), End: d.ms(d.To()),
		Services: []pageService{}, Findings: []report.Finding{}, Gaps: []pageGap{}, Details: []string{},
	}
	for _, s := range []string{r.Source.ControlPlane, r.Source.Rules} {
		if s != "" {
			p.Details = append(p.Details, collect.Plain(s))
		}
	}
	if !r.AsOf.IsZero() {
		v := d.ms(r.AsOf)
		p.AsOf = &v
	}
	for i := range r.Services {
		v := &r.Services[i]
		if svc := d.service(v); svc != nil {
			p.Services = append(p.Services, d.pageService(svc, v))
		}
	}
	for _, f := range r.Findings {
		f.Object, f.Message, f.Fix = collect.Plain(f.Object), collect.Plain(f.Message), collect.Plain(f.Fix)
		p.Findings = append(p.Findings, f)
	}
	for _, g := range r.Gaps {
		out := pageGap{Source: collect.Plain(g.Source), From: d.ms(g.From), Why: collect.Plain(g.Why)}
		if g.To != nil {
			to := d.ms(*g.To)
			out.To = &to
		}
		p.Gaps = append(p.Gaps, out)
	}
	return p
}

func (d *Document) pageService(svc *timeline.Service, v *report.Service) pageService {
	out := pageService{Name: collect.Plain(v.Namespace + "/" + v.Name), State: v.State, Advice: collect.Plain(lanes.AdviceText(svc)), Changes: []pageChange{}}
	tracks, left := lanes.Tracks(d.Snapshot, svc, d.From(), d.To(), pageNodes)
	out.Left = left
	for i := range tracks {
		out.Tracks = append(out.Tracks, d.pageTrack(&tracks[i]))
	}
	paths := v.Paths
	if out.Earlier = len(paths) - pageChanges; out.Earlier > 0 {
		paths = paths[out.Earlier:]
	} else {
		out.Earlier = 0
	}
	byID := make(map[string]*timeline.Path, len(svc.Paths))
	for _, p := range svc.Paths {
		byID[p.ID] = p
	}
	for i := range paths {
		out.Changes = append(out.Changes, d.pageChange(svc, &paths[i], byID[paths[i].ID]))
	}
	out.Matrix = d.matrix(svc)
	return out
}

func (d *Document) pageTrack(t *lanes.Track) pageTrack {
	out := pageTrack{Key: collect.Plain(t.Key), Kind: rowKinds[t.Kind], Label: collect.Plain(t.Label), Spans: []pageSpan{}}
	for _, s := range t.Stretches {
		span := pageSpan{From: d.ms(s.From), To: d.ms(s.To), Class: s.Class.String(), Claimed: s.Claimed, Text: collect.Plain(s.Text), Note: collect.Plain(s.Note)}
		if s.Count >= 0 {
			span.Count = &s.Count
		}
		out.Spans = append(out.Spans, span)
	}
	for _, a := range t.Arrivals {
		out.Arrivals = append(out.Arrivals, pageArrival{At: d.ms(a.At), LagMS: millis(a.Lag), ErrorMS: millis(a.Error), Paths: len(a.Paths)})
	}
	return out
}

func (d *Document) pageChange(svc *timeline.Service, x *report.Path, p *timeline.Path) pageChange {
	out := pageChange{
		ID: collect.Plain(x.ID), Name: collect.Plain(report.PathName(x)), Cause: lanes.CauseText(timeline.Cause(x.Cause)), By: collect.Plain(x.By), Status: x.Status,
		At: d.ms(x.Origin.At), EndMS: x.EndMS, ErrorMS: x.ErrorMS(), AtMost: x.AtMost(), IP: x.Endpoint.IP, Node: collect.Plain(x.Endpoint.Node),
		Risk: x.RiskMS.FromTermination, Bars: []pageBar{}, Sentences: []string{},
	}
	if x.Rules != nil {
		out.Missing = plainAll(x.Rules.Missing)
	}
	if p == nil {
		return out
	}
	w := lanes.NewWaterfall(p, svc.Paths, d.Snapshot.Now)
	out.Sentences = plainAll(w.Sentences())
	for i := range w.Bars {
		b := &w.Bars[i]
		bar := pageBar{Label: collect.Plain(b.Label), Depth: b.Depth, Kind: barKinds[b.Kind], From: d.ms(b.From), To: d.ms(b.To), Share: b.Share, Note: collect.Plain(b.Note), AtMost: b.AtMost}
		if i > 0 && b.Kind != lanes.BarClaimed && b.Kind != lanes.BarUnknown {
			bar.Took = lanes.Duration(b.Took)
		}
		if b.UsualN > 0 {
			bar.Usual = lanes.Duration(b.Usual)
		}
		out.Bars = append(out.Bars, bar)
	}
	return out
}

func millis(t time.Duration) float64 { return float64(t.Microseconds()) / 1000 }
