package noderules

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/kconverge/kconverge/collect"
)

func imm(reg uint32, data ...byte) expr { return expr{name: "immediate", dreg: reg, data: data} }

func to(addrMin, addrMax, protoMin, protoMax uint32) expr {
	return expr{name: "nat", arg: natDNAT, nat: &natRegs{addrMin, addrMax, protoMin, protoMax}}
}

func index(i uint32) []byte { return binary.NativeEndian.AppendUint32(nil, i) }

func mapOf(elems ...element) *set {
	s := &set{flags: setMap | setAnonymous, elems: map[string]element{}}
	for _, e := range elems {
		s.elems[string(e.key)] = e
	}
	return s
}

func TestARuleLeadsWhereItsRegistersSay(t *testing.T) {
	two := mapOf(
		element{key: index(0), data: []byte{10, 0, 0, 1, 0, 80, 0, 0}},
		element{key: index(1), data: []byte{10, 0, 0, 2, 0, 81, 0, 0}},
	)
	jumps := mapOf(
		element{key: index(0), verdict: &verdict{code: verdictGoto, chain: "a"}},
		element{key: index(1), verdict: &verdict{code: verdictDrop}},
	)
	tbl := newTable(tableKey{familyIPv4, "kube-proxy"})
	tbl.sets["two"], tbl.sets["jumps"] = two, jumps
	tbl6 := newTable(tableKey{familyIPv6, "kube-proxy"})
	v6 := netip.MustParseAddr("fd00::1").As16()
	tests := []struct {
		name  string
		table *table
		exprs []expr
		want  effect
	}{
		{"two immediates", tbl, []expr{imm(1, 10, 0, 0, 1), imm(2, 0, 80), to(1, 1, 2, 2)},
			effect{endpoints: eps("10.0.0.1:80")}},
		{"immediates in 4-byte registers", tbl, []expr{imm(8, 10, 0, 0, 1), imm(9, 0, 80), to(8, 8, 9, 9)},
			effect{endpoints: eps("10.0.0.1:80")}},
		{"register 9 is the second part of register 1", tbl, []expr{imm(1, 10, 0, 0, 1, 0, 80, 0, 0), to(1, 1, 9, 9)},
			effect{endpoints: eps("10.0.0.1:80")}},
		{"IPv6", tbl6, []expr{imm(1, v6[:]...), imm(2, 0, 80), to(1, 1, 2, 2)},
			effect{endpoints: eps("[fd00::1]:80")}},
		{"a map of address and port", tbl, []expr{{name: "numgen", dreg: 1, arg: 2}, {name: "lookup", set: "two", sreg: 1, dreg: 1, mapped: true}, to(1, 1, 9, 9)},
			effect{endpoints: eps("10.0.0.1:80", "10.0.0.2:81"), sets: []string{"two"}}},
		{"an index beyond the modulus is never drawn", tbl, []expr{{name: "numgen", dreg: 1, arg: 1}, {name: "lookup", set: "two", sreg: 1, dreg: 1, mapped: true}, to(1, 1, 9, 9)},
			effect{endpoints: eps("10.0.0.1:80"), sets: []string{"two"}}},
		{"an offset moves the index", tbl, []expr{{name: "numgen", dreg: 1, arg: 1, offset: 1}, {name: "lookup", set: "two", sreg: 1, dreg: 1, mapped: true}, to(1, 1, 9, 9)},
			effect{endpoints: eps("10.0.0.2:81"), sets: []string{"two"}}},
		{"a verdict map", tbl, []expr{{name: "numgen", dreg: 1, arg: 2}, {name: "lookup", set: "jumps", sreg: 1, mapped: true}},
			effect{targets: []string{"a"}, odd: []string{"drop by @jumps"}, sets: []string{"jumps"}}},
		{"a protocol is no condition", tbl, []expr{{name: "meta", dreg: 1, arg: metaL4Proto}, {name: "cmp", sreg: 1, data: []byte{protoUDP}}, {name: "immediate", verdict: &verdict{code: verdictGoto, chain: "a"}}},
			effect{targets: []string{"a"}, proto: protoUDP}},
		{"another comparison is", tbl, []expr{{name: "payload", dreg: 1}, {name: "cmp", sreg: 1, data: []byte{6}}, {name: "immediate", verdict: &verdict{code: verdictJump, chain: "a"}}},
			effect{targets: []string{"a"}, conditional: true}},
		{"a set match is", tbl, []expr{{name: "lookup", set: "affinity-x", sreg: 1}, {name: "immediate", verdict: &verdict{code: verdictGoto, chain: "a"}}},
			effect{targets: []string{"a"}, conditional: true, sets: []string{"affinity-x"}}},
		{"a range of addresses is not followed", tbl, []expr{imm(1, 10, 0, 0, 1), imm(3, 10, 0, 0, 9), imm(2, 0, 80), to(1, 3, 2, 2)},
			effect{odd: []string{"dnat to a range"}}},
		{"a port is needed", tbl, []expr{imm(1, 10, 0, 0, 1), to(1, 1, 0, 0)},
			effect{odd: []string{"dnat to 10.0.0.1, port unchanged"}}},
		{"an address is needed", tbl, []expr{imm(2, 0, 80), to(1, 1, 2, 2)},
			effect{odd: []string{"dnat to an address that is not in the rule"}}},
		{"registers that do not exist", tbl, []expr{imm(7, 10, 0, 0, 1), imm(99, 0, 80), to(7, 7, 99, 99)},
			effect{odd: []string{"dnat to an address that is not in the rule"}}},
		{"source translation leads nowhere", tbl, []expr{{name: "nat", nat: &natRegs{}}},
			effect{odd: []string{"snat"}}},
		{"a verdict that ends", tbl, []expr{{name: "immediate", verdict: &verdict{code: verdictReturn}}},
			effect{odd: []string{"return"}}},
		{"a statement that is not known", tbl, []expr{{name: "tproxy"}},
			effect{odd: []string{"tproxy"}}},
		{"counters and logs do not matter", tbl, []expr{{name: "counter"}, {name: "log"}, {name: "dynset"}},
			effect{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := evaluate(tt.table, &rule{exprs: tt.exprs})
			slices.SortFunc(got.endpoints, netip.AddrPort.Compare)
			if fmt.Sprint(got) != fmt.Sprint(tt.want) {
				t.Errorf("got  %v\nwant %v", got, tt.want)
			}
		})
	}
}

func eps(s ...string) (out []netip.AddrPort) {
	for _, x := range s {
		out = append(out, netip.MustParseAddrPort(x))
	}
	return out
}

func TestChainNamesTellTheServicePort(t *testing.T) {
	port := func(ns, svc, name string, proto collect.Protocol) kpPort { return kpPort{ns, svc, name, proto} }
	tests := []struct {
		name string
		role kpRole
		port kpPort
		ok   bool
	}{
		{"service-ULMVA6XW-ns1/svc1/tcp/p80", kpCluster, port("ns1", "svc1", "p80", collect.TCP), true},
		{"local-ULMVA6XW-ns-1/svc-1/udp/p-80", kpLocal, port("ns-1", "svc-1", "p-80", collect.UDP), true},
		{"external-ULMVA6XW-ns1/svc1/sctp/", kpExternal, port("ns1", "svc1", "", collect.SCTP), true},
		{"firewall-ULMVA6XW-ns1/svc1/tcp/p80", kpFirewall, port("ns1", "svc1", "p80", collect.TCP), true},
		{"endpoint-5OJB2KTY-ns1/svc1/tcp/p80__10.180.0.1/80", kpEndpoint, port("ns1", "svc1", "p80", collect.TCP), true},
		{"endpoint-5OJB2KTY-ns1/svc1/tcp/__fd00.10..1/80", kpEndpoint, port("ns1", "svc1", "", collect.TCP), true},
		{"endpoint-5OJB2KTY-ns1/svc1/tcp/p80", "", kpPort{}, false},
		{"services", "", kpPort{}, false},
		{"service-endpoints-check", "", kpPort{}, false},
		{"cluster-ips-check", "", kpPort{}, false},
		{"service-ULMVA6XW-ns1/svc1/icmp/p80", "", kpPort{}, false},
		{"service-ULMVA6XW-ns1/svc1/tcp", "", kpPort{}, false},
		{"service-ULMVA6XW-ns1/svc1/tcp/p/80", "", kpPort{}, false},
		{"service-ULMVA6XW-/svc1/tcp/p80", "", kpPort{}, false},
		{"mine-ULMVA6XW-ns1/svc1/tcp/p80", "", kpPort{}, false},
		{"", "", kpPort{}, false},
	}
	for _, tt := range tests {
		role, p, ok := kpParseChain(tt.name)
		if role != tt.role || p != tt.port || ok != tt.ok {
			if ok || tt.ok {
				t.Errorf("%q: %s %v %v, want %s %v %v", tt.name, role, p, ok, tt.role, tt.port, tt.ok)
			}
		}
	}
}

func TestCommentsTellTheServicePortUnlessTheyMayBeCut(t *testing.T) {
	long := "namespace/" + string(make([]byte, kpCommentMax))
	for _, tt := range []struct {
		comment string
		want    string
	}{
		{"ns1/svc1:p80", "ns1/svc1/TCP/p80"},
		{"ns1/svc1", "ns1/svc1/TCP/"},
		{"svc1", ""}, {"/svc1", ""}, {"ns1/", ""}, {"", ""}, {long, ""},
	} {
		p, ok := kpParseComment(tt.comment, collect.TCP)
		if got := p.String(); ok != (tt.want != "") || ok && got != tt.want {
			t.Errorf("%.20q: %s %v, want %s", tt.comment, got, ok, tt.want)
		}
	}
}

func TestDifferenceIsWhatAReaderNeedsToKnow(t *testing.T) {
	port := func(svc string, endpoints ...string) collect.RulePort {
		return collect.RulePort{RulePortKey: collect.RulePortKey{Namespace: "d", Service: svc, Protocol: collect.TCP, Family: collect.IPv4, Policy: collect.PolicyCluster}, Endpoints: eps(endpoints...)}
	}
	was := []collect.RulePort{port("changed", "10.0.0.1:80"), port("gone", "10.0.0.2:80"), port("same", "10.0.0.3:80")}
	now := []collect.RulePort{port("changed", "10.0.0.9:80"), port("new", "10.0.0.4:80"), port("same", "10.0.0.3:80")}
	want := []collect.RulePort{port("changed", "10.0.0.9:80"), port("gone"), port("new", "10.0.0.4:80")}
	if got := difference(was, now); render(got) != render(want) {
		t.Errorf("got\n%swant\n%s", render(got), render(want))
	}
}
