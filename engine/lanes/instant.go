package lanes

import (
	"fmt"
	"net/netip"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/engine/timeline"
)

// InstantRow is one line of the table "at this instant": what one plane had, and
// one difference from what was wanted. A plane with several differences has
// several lines, of which only the first has Plane and Set.
type InstantRow struct {
	Plane string
	Key   string // of the lane
	Set   string // how many endpoints it had
	// Diff is "=" or the difference: "+ 10.244.3.5:8080", with Pod its name.
	Diff, Pod string
	// Note is "web-bx4wq rev 1841", "stopped 0.74 s", "for 0.61 s".
	Note string
	Tone Tone
}

// Instant is what every plane had at t and how it differed from what was wanted
// of it. Of the time before a plane was observed it says what is claimed, and no
// differences.
func Instant(svc *timeline.Service, t time.Time) []InstantRow {
	in := svc.PlanesAt(t)
	n := 3 + len(in.Rules)
	for _, p := range in.Rules {
		n += max(len(p.Differences)-1, 0)
	}
	rows := append(make([]InstantRow, 0, n), wantedRow(svc, t))
	if in.Slices != nil {
		rows = planeRows(rows, in.Slices, "slices", t)
	}
	if in.Endpoints != nil {
		rows = planeRows(rows, in.Endpoints, "endpoints v1", t)
	}
	for _, p := range in.Rules {
		rows = planeRows(rows, p, p.ID.Node, t)
	}
	return rows
}

func wantedRow(svc *timeline.Service, t time.Time) InstantRow {
	r := InstantRow{Plane: "wanted", Key: "wanted"}
	n, ok := valueAt(svc.Wanted, t)
	if !ok {
		r.Set, r.Diff, r.Tone = "·", "not seen yet", Dim
		return r
	}
	r.Set = strconv.Itoa(n)
	if svc.Slices == nil {
		return r
	}
	var ips []netip.Addr
	for i := range svc.Slices.Members {
		m := &svc.Slices.Members[i]
		if m.At(t).Want && m.Endpoint.IP.IsValid() {
			ips = append(ips, m.Endpoint.IP)
		}
	}
	sort.Slice(ips, func(i, j int) bool { return ips[i].Less(ips[j]) })
	if f, ok := FallbackAt(svc, t); ok {
		ips, r.Note = f.IPs, "serving while terminating"
	}
	r.Diff = ShortAddresses(ips)
	return r
}

// ShortAddresses writes addresses without the parts that all those of a family
// share: ".1.2  .1.3  .2.2  …1::2  …1::3  …2::2".
func ShortAddresses(ips []netip.Addr) string {
	var four, six []string
	for _, ip := range ips {
		if ip = ip.Unmap(); ip.Is4() {
			four = append(four, ip.String())
		} else {
			six = append(six, ip.String())
		}
	}
	if p := sharedParts(four, "."); strings.Count(p, ".") >= 2 {
		// At least the last two parts stay.
		f := strings.SplitN(p, ".", 3)
		for i := range four {
			four[i] = strings.TrimPrefix(four[i], f[0]+"."+f[1])
		}
	}
	if p := sharedParts(six, ":"); p != "" {
		p = strings.TrimSuffix(p, "::") // which stays whole
		for i := range six {
			six[i] = "…" + strings.TrimPrefix(six[i], p)
		}
	}
	return strings.Join(append(four, six...), "  ")
}

// sharedParts is how all of at least two words begin, up to and with a sep.
func sharedParts(words []string, sep string) string {
	if len(words) < 2 {
		return ""
	}
	p := words[0]
	for _, w := range words[1:] {
		for !strings.HasPrefix(w, p) {
			p = p[:strings.LastIndex(strings.TrimSuffix(p, sep), sep)+1]
		}
	}
	return p[:strings.LastIndex(p, sep)+1]
}

// dualStack tells whether a Service has endpoints of two families.
func dualStack(svc *timeline.Service) bool {
	return svc.Spec != nil && len(svc.Spec.Families) > 1
}

// wantedFamilies is how many endpoints of each family should be routable at t.
func wantedFamilies(svc *timeline.Service, t time.Time) (four, six int) {
	if svc.Slices == nil {
		return 0, 0
	}
	for i := range svc.Slices.Members {
		m := &svc.Slices.Members[i]
		switch {
		case !m.At(t).Want || !m.Endpoint.IP.IsValid():
		case m.Endpoint.Family == collect.IPv6:
			six++
		default:
			four++
		}
	}
	return four, six
}

// planeRows appends the lines of one plane.
func planeRows(rows []InstantRow, p *timeline.PlaneInstant, label string, t time.Time) []InstantRow {
	head := InstantRow{Plane: label, Key: p.ID.String()}
	switch {
	case p.Knowledge == timeline.Blind:
		head.Set, head.Diff, head.Tone = "?", "nothing observes it", Dim
		return append(rows, head)
	case !p.Seen && p.Claimed:
		return append(rows, pastRow(head, p.ID, p.Past))
	case !p.Seen:
		head.Set, head.Diff, head.Tone = "·", "not seen yet", Dim
		return append(rows, head)
	}
	head.Set, head.Note = strconv.Itoa(p.Have), p.Note
	if p.Knowledge == timeline.InGap {
		head.Diff, head.Tone = "not known: in a gap", Warn
		return append(rows, head)
	}
	n := len(rows)
	rows = differences(rows, p, t)
	if len(rows) == n {
		head.Diff, head.Tone = "=", Good
		if !p.Agrees() {
			// The frontends differ, not an endpoint.
			head.Diff, head.Tone = "frontends differ", Warn
		}
		return append(rows, head)
	}
	rows[n].Plane, rows[n].Set = head.Plane, head.Set
	for i := n; i < len(rows); i++ {
		rows[i].Key = head.Key
	}
	return rows
}

// differences appends those of one plane's endpoints at t, the oldest first.
func differences(out []InstantRow, p *timeline.PlaneInstant, t time.Time) []InstantRow {
	for i := range p.Differences {
		d := &p.Differences[i]
		if !d.Endpoint.IP.IsValid() {
			continue
		}
		sign := "~"
		switch d.Kind {
		case "missing":
			sign = Minus
		case "stale", "unexpected":
			sign = "+"
		}
		r := InstantRow{Diff: sign + " " + EndpointText(d.Endpoint), Pod: d.Endpoint.Pod, Note: "for " + Duration(t.Sub(d.Since)), Tone: Warn}
		if !d.Stopped.IsZero() {
			r.Note, r.Tone = "stopped "+Duration(t.Sub(d.Stopped)), Bad
		}
		out = append(out, r)
	}
	return out
}

// EndpointText is an endpoint's address with its port when it has just one:
// "10.244.3.5:8080".
func EndpointText(e timeline.Endpoint) string {
	if !e.IP.IsValid() {
		return "frontends"
	}
	if len(e.Ports) == 1 {
		return netip.AddrPortFrom(e.IP.Unmap(), uint16(e.Ports[0])).String()
	}
	return e.IP.Unmap().String()
}

// Failing says what share of new connections would meet a stopped pod at t, on
// the node where that is worst, or "" when none would. Rules spread connections
// evenly over what they route to; established ones are not in the rules.
func Failing(svc *timeline.Service, t time.Time) string {
	var worst share
	node, others := "", 0
	for _, p := range svc.Rules.All() {
		c, ok := p.At(t)
		if !ok || c.Knowledge != timeline.Known || c.Stopped == 0 || c.Have == 0 {
			continue
		}
		others++
		here := share{stopped: c.Stopped, have: c.Have}
		if dualStack(svc) {
			// A connection is of one family, whose rules know nothing of the
			// other's endpoints.
			here = worstFamily(p, t)
		}
		if node == "" || here.stopped*worst.have > worst.stopped*here.have {
			node, worst = p.ID.Node, here
		}
	}
	if node == "" || worst.have == 0 {
		return ""
	}
	over := ""
	if worst.family != "" {
		over = " over " + string(worst.family)
	}
	s := fmt.Sprintf("%d of %d new connections%s from %s would fail at this instant", worst.stopped, worst.have, over, node)
	if others > 1 {
		s += fmt.Sprintf(", and some from %s", Plural(others-1, "other node"))
	}
	return s
}

// share is how many of the endpoints that a node routes to have stopped.
type share struct {
	family        collect.Family
	stopped, have int
}

// worstFamily is the family that more of what a node routes to in it has
// stopped; IPv4 among equals.
func worstFamily(p *timeline.Plane, t time.Time) share {
	shares := [2]share{{family: collect.IPv4}, {family: collect.IPv6}}
	for i := range p.Members {
		m := &p.Members[i]
		c := m.At(t)
		if !c.Have || !m.Endpoint.IP.IsValid() {
			continue
		}
		f := &shares[0]
		if m.Endpoint.Family == collect.IPv6 {
			f = &shares[1]
		}
		f.have++
		if c.Stopped {
			f.stopped++
		}
	}
	if shares[1].stopped*shares[0].have > shares[0].stopped*shares[1].have || shares[0].have == 0 {
		return shares[1]
	}
	return shares[0]
}

// InstantTitle says which instant a table speaks of and how long after the last
// action that was: "at 12:04:18.500", "+1.75 s after scale 7→5".
func InstantTitle(snap *timeline.Snapshot, svc *timeline.Service, t time.Time, loc *time.Location) (at, after string) {
	if loc == nil {
		loc = time.UTC
	}
	at = "at "
	if t = t.In(loc); dayNumber(t) != dayNumber(snap.Now.In(loc)) {
		at += t.Format("Jan 2 ")
	}
	at += t.Format("15:04:05.000")
	if m := lastMark(snap, svc, t, func(m *timeline.Mark) bool { return m.Kind == "action" }); m != nil {
		after = fmt.Sprintf("+%s after %s", Duration(t.Sub(m.At)), printable(m.Text))
	}
	return at, after
}
