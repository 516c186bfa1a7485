package export

import (
	"encoding/csv"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/engine/report"
)

// Columns of the CSV, in their order. Times are RFC 3339 in UTC, durations milliseconds;
// an empty cell means "not known" or "not yet", never zero.
var Columns = []string{
	"namespace", "service", "path", "op", "cause", "by", "status", "pod", "uid", "ip", "family", "pod_node",
	"origin_at", "origin_claimed_at", "end_ms", "slice_at", "slice_lag_ms", "slice_error_ms", "slice_status",
	"node", "at", "not_before", "lag_ms", "from_slice_ms", "error_ms", "node_status", "official_ms", "official_why", "generation",
	"risk_from_termination_ms", "risk_from_exit_ms",
}

// CSV writes a row for each path and node; a path without a node (a headless Service,
// rules that nothing reads) has one row, whose node is empty. Lags count from the origin.
func (d *Document) CSV(w io.Writer) error {
	out := csv.NewWriter(w)
	if err := out.Write(Columns); err != nil {
		return err
	}
	for i := range d.Report.Services {
		v := &d.Report.Services[i]
		for k := range v.Paths {
			p := &v.Paths[k]
			for _, row := range csvRows(v, p) {
				if err := out.Write(row); err != nil {
					return err
				}
			}
		}
	}
	out.Flush()
	return out.Error()
}

func csvRows(v *report.Service, p *report.Path) (rows [][]string) {
	head := []string{
		cell(v.Namespace), cell(v.Name), cell(p.ID), p.Op, p.Cause, cell(p.By), p.Status, cell(p.Endpoint.Pod), cell(p.Endpoint.UID),
		p.Endpoint.IP, p.Endpoint.Family, cell(p.Endpoint.Node), stamp(&p.Origin.At), stamp(p.Origin.ClaimedAt), number(p.EndMS),
	}
	if s := p.Slice; s != nil {
		head = append(head, stamp(s.At), number(s.LagMS), number(&s.ErrorMS), s.Status)
	} else {
		head = append(head, "", "", "", "")
	}
	risk := []string{number(p.RiskMS.FromTermination), number(p.RiskMS.FromExit)}
	row := func(node ...string) {
		rows = append(rows, append(append(append([]string{}, head...), node...), risk...))
	}
	if p.Rules == nil || len(p.Rules.ByNode) == 0 {
		row("", "", "", "", "", "", "", "", "", "")
		return rows
	}
	for _, node := range sortedKeys(p.Rules.ByNode) {
		h := p.Rules.ByNode[node]
		generation := ""
		if h.Generation > 0 {
			generation = strconv.FormatUint(uint64(h.Generation), 10)
		}
		row(cell(node), stamp(h.At), stamp(h.NotBefore), number(h.LagMS), number(h.FromSliceMS), number(&h.ErrorMS), h.Status,
			number(h.OfficialMS), cell(h.OfficialWhy), generation)
	}
	return rows
}

// cell makes a text from the cluster safe for a spreadsheet, which would compute what
// begins like a formula: an apostrophe before it makes it text.
func cell(s string) string {
	s = collect.Plain(s)
	if s != "" && strings.ContainsRune("=+-@", rune(s[0])) {
		return "'" + s
	}
	return s
}

func stamp(t *time.Time) string {
	if t == nil {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

func number(v *float64) string {
	if v == nil {
		return ""
	}
	return strconv.FormatFloat(*v, 'f', -1, 64)
}
