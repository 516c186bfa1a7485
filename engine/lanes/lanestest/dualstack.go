package lanestest

import (
	"net/netip"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/engine/timeline"
)

// DualStack is Converging with a Service of two families: every pod has an IPv6
// address beside its IPv4 one, and each plane treats both alike.
func DualStack() *timeline.Snapshot {
	snap := Converging()
	svc := *snap.Services[0]
	spec := *svc.Spec
	spec.Families = []collect.Family{collect.IPv4, collect.IPv6}
	spec.ClusterIPs = append(spec.ClusterIPs[:1:1], netip.MustParseAddr("fd00:10:96::11"))
	svc.Spec = &spec
	six := func(ip netip.Addr) netip.Addr {
		b, out := ip.As4(), netip.MustParseAddr("fd00:10:244::").As16()
		out[7], out[15] = b[2], b[3]
		return netip.AddrFrom16(out)
	}
	twice := func(p *timeline.Plane) *timeline.Plane {
		q := *p
		q.Members, q.Changes = append([]timeline.Member(nil), p.Members...), append([]timeline.PlaneChange(nil), p.Changes...)
		for _, m := range p.Members {
			if m.Endpoint.IP.IsValid() {
				m.Endpoint.IP, m.Endpoint.Family = six(m.Endpoint.IP), collect.IPv6
				q.Members = append(q.Members, m)
			}
		}
		for i := range q.Changes {
			c := &q.Changes[i]
			c.Want, c.Have, c.Missing, c.Stale, c.Unexpected, c.Changed, c.Stopped = 2*c.Want, 2*c.Have, 2*c.Missing, 2*c.Stale, 2*c.Unexpected, 2*c.Changed, 2*c.Stopped
		}
		return &q
	}
	svc.Slices = twice(svc.Slices)
	var rules []*timeline.Plane
	for _, p := range svc.Rules.All() {
		rules = append(rules, twice(p))
	}
	svc.Rules = timeline.PlanesOf(rules...)
	svc.Wanted = append([]timeline.Count(nil), svc.Wanted...)
	for i := range svc.Wanted {
		svc.Wanted[i].N *= 2
	}
	svc.Pods = append([]timeline.PodTrack(nil), svc.Pods...)
	for i := range svc.Pods {
		p := &svc.Pods[i]
		p.IPs = append(p.IPs[:1:1], six(p.IPs[0]))
	}
	var paths []*timeline.Path
	for _, p := range svc.Paths {
		q := *p
		q.ID, q.Endpoints = p.ID+"-6", nil // the legacy Endpoints have one family
		q.Endpoint.IP, q.Endpoint.Family = six(p.Endpoint.IP), collect.IPv6
		paths = append(paths, p, &q)
	}
	svc.Paths = paths
	svc.Episodes = append([]timeline.Episode(nil), svc.Episodes...)
	for i := range svc.Episodes {
		svc.Episodes[i].Adds *= 2
		svc.Episodes[i].Removes *= 2
	}
	svc.SliceList = append(svc.SliceList[:1:1], timeline.Slice{Name: svc.Name + "-kq2vd", ResourceVersion: 1843, Family: collect.IPv6, Endpoints: 5})
	snap.Services[0] = &svc
	return snap
}
