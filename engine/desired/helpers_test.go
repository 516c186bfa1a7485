package desired

import (
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/kconverge/kconverge/collect"
)

var deletedAt = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// pod makes a ready, selected pod on node n1; opts change it.
func pod(name, ip string, opts ...func(*PodRef)) PodRef {
	p := PodRef{Name: name, UID: "u-" + name, Pod: &collect.Pod{
		Labels: map[string]string{"app": "web"}, Node: "n1", Phase: "Running",
		Ready: &collect.Condition{Status: true},
	}}
	for _, s := range strings.Fields(ip) {
		p.Pod.IPs = append(p.Pod.IPs, netip.MustParseAddr(s))
	}
	for _, o := range opts {
		o(&p)
	}
	return p
}

func unready(p *PodRef)     { p.Pod.Ready = &collect.Condition{} }
func terminating(p *PodRef) { p.Pod.Deletion = deletedAt }
func failed(p *PodRef)      { p.Pod.Phase = "Failed" }
func succeeded(p *PodRef)   { p.Pod.Phase = "Succeeded" }
func unlabelled(p *PodRef)  { p.Pod.Labels = map[string]string{"app": "other"} }
func nodeGone(p *PodRef)    { p.NodeGone = true }
func named(name string, n int32, proto collect.Protocol) func(*PodRef) {
	return func(p *PodRef) {
		p.Pod.Ports = append(p.Pod.Ports, collect.NamedPort{Name: name, Port: n, Protocol: proto})
	}
}

// service makes a ClusterIP Service 80 -> 8080 that selects app=web.
func service(opts ...func(*collect.Service)) *collect.Service {
	s := &collect.Service{
		Kind: "ClusterIP", Selector: map[string]string{"app": "web"},
		Ports:      []collect.ServicePort{{Protocol: collect.TCP, Port: 80, Target: 8080}},
		ClusterIPs: []netip.Addr{netip.MustParseAddr("10.96.0.11")},
		Families:   []collect.Family{collect.IPv4},
	}
	for _, o := range opts {
		o(s)
	}
	return s
}

func dual(s *collect.Service) {
	s.Families = []collect.Family{collect.IPv4, collect.IPv6}
	s.ClusterIPs = append(s.ClusterIPs[:1:1], netip.MustParseAddr("fd00::11"))
}
func headless(s *collect.Service) { s.Headless, s.ClusterIPs = true, nil }
func publish(s *collect.Service)  { s.PublishNotReadyAddresses = true }

func flags(e SliceEntry) string {
	s := e.PodName + " " + e.Address.String()
	for _, f := range []struct {
		on   bool
		name string
	}{{e.Ready, "ready"}, {e.Serving, "serving"}, {e.Terminating, "terminating"}} {
		if f.on {
			s += " " + f.name
		}
	}
	return s + portText(e.Ports)
}

func portText(ports []collect.SlicePort) string {
	s := ""
	for _, p := range ports {
		s += fmt.Sprintf(" %s/%s/%d", p.Name, p.Protocol, p.Port)
	}
	return s
}
