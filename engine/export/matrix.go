package export

import (
	"slices"
	"strings"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/engine/lanes"
	"github.com/kconverge/kconverge/engine/timeline"
)

// pageTable is nodes by endpoints as of the snapshot. Each row of Cells has a word's
// first letter for each endpoint: a(grees), n(either wants nor has), m(issing), s(tale),
// x (stale, and stopped), u(nexpected), c(hanged), ? (unknown).
type pageTable struct {
	Endpoints     []string `json:"endpoints"`
	Nodes         []string `json:"nodes"`
	Cells         []string `json:"cells"`
	LeftNodes     int      `json:"leftNodes"`
	LeftEndpoints int      `json:"leftEndpoints"`
}

// matrix is nil for a Service without rules. Nodes that differ stand first.
func (d *Document) matrix(svc *timeline.Service) *pageTable {
	planes := svc.Rules.All()
	if len(planes) == 0 {
		return nil
	}
	now := d.Snapshot.Now
	ends := map[timeline.EndpointID]timeline.Endpoint{}
	for _, p := range append([]*timeline.Plane{svc.Slices}, planes...) {
		if p == nil {
			continue
		}
		for i := range p.Members {
			if c := p.Members[i].At(now); c.Want || c.Have {
				ends[p.Members[i].Endpoint.EndpointID] = p.Members[i].Endpoint
			}
		}
	}
	list := make([]timeline.Endpoint, 0, len(ends))
	for _, e := range ends {
		list = append(list, e)
	}
	slices.SortFunc(list, func(a, b timeline.Endpoint) int {
		if c := a.IP.Compare(b.IP); c != 0 {
			return c
		}
		return strings.Compare(a.UID, b.UID)
	})
	out := &pageTable{LeftEndpoints: max(0, len(list)-pageMatrix), Endpoints: []string{}, Nodes: []string{}, Cells: []string{}}
	list = list[:min(len(list), pageMatrix)]
	for _, e := range list {
		name := lanes.EndpointText(e)
		if e.Pod != "" {
			name = e.Pod + " " + name
		}
		out.Endpoints = append(out.Endpoints, collect.Plain(name))
	}
	differs := func(p *timeline.Plane) bool {
		c, ok := p.At(now)
		return !ok || c.Knowledge != timeline.Known || !c.Agrees()
	}
	slices.SortStableFunc(planes, func(a, b *timeline.Plane) int {
		switch x, y := differs(a), differs(b); {
		case x == y:
			return 0
		case x:
			return -1
		}
		return 1
	})
	out.LeftNodes = max(0, len(planes)-pageMatrix)
	for _, p := range planes[:min(len(planes), pageMatrix)] {
		out.Nodes = append(out.Nodes, collect.Plain(p.ID.Node))
		out.Cells = append(out.Cells, d.row(p, list))
	}
	return out
}

func (d *Document) row(p *timeline.Plane, ends []timeline.Endpoint) string {
	row := make([]byte, len(ends))
	c, ok := p.At(d.Snapshot.Now)
	known := ok && c.Knowledge == timeline.Known
	members := make(map[timeline.EndpointID]*timeline.Member, len(p.Members))
	for i := range p.Members {
		members[p.Members[i].Endpoint.EndpointID] = &p.Members[i]
	}
	for i, e := range ends {
		row[i] = '?'
		if !known {
			continue
		}
		var m timeline.MemberChange
		if x := members[e.EndpointID]; x != nil {
			m = x.At(d.Snapshot.Now)
		} else {
			m.Agrees = true
		}
		switch {
		case m.Unexpected:
			row[i] = 'u'
		case m.Have && !m.Want && m.Stopped:
			row[i] = 'x'
		case m.Have && !m.Want:
			row[i] = 's'
		case m.Want && !m.Have:
			row[i] = 'm'
		case !m.Agrees:
			row[i] = 'c'
		case m.Have:
			row[i] = 'a'
		default:
			row[i] = 'n'
		}
	}
	return string(row)
}
