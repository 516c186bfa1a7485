package rulesync

import (
	"slices"

	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/kconverge/kconverge/collect"
)

// flatBaseChains are the base chains of the flat layout, at kube-proxy's
// priorities.
var flatBaseChains = []struct {
	name string
	hook hook
}{
	{chainFilterPreroutingPreDNAT, hook{"filter", unix.NF_INET_PRE_ROUTING, -110}},
	{chainFilterOutputPreDNAT, hook{"filter", unix.NF_INET_LOCAL_OUT, -110}},
	{chainFilterInput, hook{"filter", unix.NF_INET_LOCAL_IN, 0}},
	{chainFilterForward, hook{"filter", unix.NF_INET_FORWARD, 0}},
	{chainFilterOutput, hook{"filter", unix.NF_INET_LOCAL_OUT, 0}},
	{chainNATPrerouting, hook{"nat", unix.NF_INET_PRE_ROUTING, -100}},
	{chainNATOutput, hook{"nat", unix.NF_INET_LOCAL_OUT, -100}},
	{chainNATPostrouting, hook{"nat", unix.NF_INET_POST_ROUTING, 100}},
}

// flatContainers are the sets and maps of the flat layout, less the sets of
// keys, which are made when they are first needed.
func flatContainers(f family) []setSpec {
	key, keyLen := ipProtoPort(f)
	hairpin, hairpinLen := concat(f.addrType, f.addrType, typeProto, typeService), 2*f.addrLen+8
	var out []setSpec
	for _, p := range planes {
		out = append(out, setSpec{
			name: p.endpoints(), flags: unix.NFT_SET_MAP, comment: "frontend and number to endpoint",
			// The number is declared as a mark: nft cannot list it as an integer.
			keyType: key<<6 | typeMark, keyLen: keyLen + 4,
			dataType: concat(f.addrType, typeService), dataLen: f.addrLen + 4,
		})
	}
	out = append(out, sourceSets(f)...)
	out = append(out, affinitySets(f)...)
	return append(out,
		setSpec{name: flatNoEndpoints, flags: unix.NFT_SET_MAP, keyType: key, keyLen: keyLen, dataType: verdictType, comment: "frontends without endpoints"},
		setSpec{name: flatMasquerade, keyType: key, keyLen: keyLen, comment: "frontends whose connections are masqueraded"},
		setSpec{name: flatMasqueradeLocal, keyType: key, keyLen: keyLen, comment: "frontends whose connections from this node are masqueraded"},
		setSpec{name: setClusterIPs, keyType: f.addrType, keyLen: f.addrLen, comment: "Active ClusterIPs"},
		setSpec{name: setHairpin, keyType: hairpin, keyLen: hairpinLen, comment: "service hairpin connections"},
	)
}

// setup writes everything that does not depend on Services. It empties the
// chains it fills, so it can be repeated; elements stay.
func (t *flatTable) setup(b *batch, f family) {
	b.addTable(flatTableName, "rules for kconverge, flat layout")
	for _, c := range flatBaseChains {
		b.addChain(c.name, "", &c.hook)
		b.flushChain(c.name)
	}
	for _, c := range []string{chainServices, chainDispatch, chainShortCircuit, chainAffinity, chainShortCircuitAffinity, chainFirewallCheck, chainMasquerading, chainNoEndpoints, chainClusterIPsCheck, chainReject} {
		b.addChain(c, "", nil)
		b.flushChain(c)
	}
	for _, s := range flatContainers(f) {
		b.setID++
		s.id = b.setID
		b.addSet(s)
	}
	for _, from := range []string{chainFilterInput, chainFilterForward, chainFilterOutput} {
		b.addRule(from, "", slices.Concat(ctNew(), one(jump(chainNoEndpoints)))...)
	}
	for _, from := range []string{chainFilterForward, chainFilterOutput} {
		b.addRule(from, "", slices.Concat(ctNew(), one(jump(chainClusterIPsCheck)))...)
	}
	b.addRule(chainNATPrerouting, "", jump(chainServices))
	b.addRule(chainNATOutput, "", jump(chainServices))
	b.addRule(chainNATPostrouting, "", jump(chainMasquerading))

	b.addRule(chainReject, "", f.reject())
	b.addRule(chainNoEndpoints, "", slices.Concat(f.key(), one(vmap(flatNoEndpoints, 0)))...)
	b.addRule(chainClusterIPsCheck, "Reject traffic to invalid ports of ClusterIPs", slices.Concat(f.load(partDaddr), one(inSet(setClusterIPs), f.reject()))...)
	for _, p := range t.serviceCIDRs {
		if collect.FamilyOf(p.Addr()) == f.name {
			b.addRule(chainClusterIPsCheck, "Drop traffic to unallocated ClusterIPs", slices.Concat(f.inPrefix(partDaddr, p, false), one(drop()))...)
		}
	}
	b.addRule(chainMasquerading, "", slices.Concat(clearMark(), one(masquerade()))...)
	b.addRule(chainMasquerading, "", slices.Concat(ctDNATed(), f.load(partSaddr, partDaddr, partProto, partDport), one(inSet(setHairpin), masquerade()))...)
	f.setupSources(b)
	t.setupServices(b, f)
}

// setupServices fills the chain that every new connection passes: what is to be
// masqueraded is marked, then the planes choose an endpoint.
func (t *flatTable) setupServices(b *batch, f family) {
	if cidr, ok := podRange(t.clusterCIDRs, f); ok {
		b.addRule(chainServices, "masquerade clusterIP traffic from outside cluster", slices.Concat(f.load(partDaddr), one(inSet(setClusterIPs)), f.inPrefix(partSaddr, cidr, true), markMasquerade())...)
		b.addRule(chainServices, "short-circuit pod traffic", slices.Concat(f.inPrefix(partSaddr, cidr, false), one(jump(chainShortCircuit)))...)
	}
	b.addRule(chainServices, "masquerade", slices.Concat(f.key(), one(inSet(flatMasquerade)), markMasquerade())...)
	b.addRule(chainServices, "masquerade local traffic", slices.Concat(fromThisHost(), f.key(), one(inSet(flatMasqueradeLocal)), markMasquerade())...)
	b.addRule(chainServices, "short-circuit local traffic", slices.Concat(fromThisHost(), one(jump(chainShortCircuit)))...)
	b.addRule(chainServices, "", jump(chainDispatch))
	f.setupAffinity(b)
}

// key loads the address, protocol and port that a packet is for.
func (f family) key() []expr.Any { return f.load(partDaddr, partProto, partDport) }

// addCount makes the set of the keys with n endpoints, and the rule that sends
// such a connection to one of them.
func (p *plane) addCount(b *batch, f family, n int) {
	b.setID++
	s := setSpec{name: p.set(false, n), id: b.setID, comment: "frontends by their number of endpoints"}
	s.keyType, s.keyLen = ipProtoPort(f)
	b.addSet(s)
	b.addRule(p.chain, "", slices.Concat(f.key(), one(
		inSet(p.set(false, n)),
		&expr.Numgen{Register: reg(f.addrLen/4 + 2), Modulus: uint32(n), Type: unix.NFT_NG_RANDOM},
		&expr.Lookup{SourceRegister: reg(0), DestRegister: reg(0), IsDestRegSet: true, SetName: p.endpoints()},
		&expr.NAT{Type: expr.NATTypeDestNAT, Family: uint32(f.proto), RegAddrMin: reg(0), RegProtoMin: reg(f.addrLen / 4)},
	))...)
}
