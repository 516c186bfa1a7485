package rulesync

import (
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/engine/desired"
)

// kube-proxy's base chains. Priorities are nft's: filter 0, dstnat -100,
// srcnat 100.
var baseChains = []struct {
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

// jumps are the chains that base chains jump to, new connections only where
// said.
var jumps = []struct {
	to, from string
	newOnly  bool
}{
	{chainNodePortEndpoints, chainFilterInput, true},
	{chainServiceEndpoints, chainFilterInput, true},
	{chainServiceEndpoints, chainFilterForward, true},
	{chainServiceEndpoints, chainFilterOutput, true},
	{chainFirewallCheck, chainFilterPreroutingPreDNAT, true},
	{chainFirewallCheck, chainFilterOutputPreDNAT, true},
	{chainServices, chainNATOutput, false},
	{chainServices, chainNATPrerouting, false},
	{chainMasquerading, chainNATPostrouting, false},
	{chainClusterIPsCheck, chainFilterForward, true},
	{chainClusterIPsCheck, chainFilterOutput, true},
}

// container is a set or map that Services put elements into.
type container struct {
	name    string
	isMap   bool
	types   func(f family) (keyType, keyLen uint32)
	comment string
}

func ipProtoPort(f family) (uint32, uint32) {
	return concat(f.addrType, typeProto, typeService), f.addrLen + 8
}

func protoPort(family) (uint32, uint32) { return concat(typeProto, typeService), 8 }

func addrOnly(f family) (uint32, uint32) { return f.addrType, f.addrLen }

// containers in the order in which they are made.
var containers = []container{
	{setHairpin, false, func(f family) (uint32, uint32) {
		return concat(f.addrType, f.addrType, typeProto, typeService), 2*f.addrLen + 8
	}, "service hairpin connections"},
	{setClusterIPs, false, addrOnly, "Active ClusterIPs"},
	{mapNoEndpointServices, true, ipProtoPort, "vmap to drop or reject packets to services with no endpoints"},
	{mapNoEndpointNodePorts, true, protoPort, "vmap to drop or reject packets to service nodeports with no endpoints"},
	{mapFirewallIPs, true, ipProtoPort, "destinations that are subject to LoadBalancerSourceRanges"},
	{mapServiceIPs, true, ipProtoPort, "ClusterIP, ExternalIP and LoadBalancer IP traffic"},
	{mapServiceNodePorts, true, protoPort, "NodePort traffic"},
}

func (c container) spec(f family, id uint32) setSpec {
	s := setSpec{name: c.name, id: id, comment: c.comment}
	s.keyType, s.keyLen = c.types(f)
	if c.isMap {
		s.flags, s.dataType = unix.NFT_SET_MAP, verdictType
	}
	return s
}

// setup writes everything that does not depend on Services: kube-proxy's
// setupNFTables. It empties the chains it fills, so it can be repeated; elements
// of Services stay.
func (t *kernelTable) setup(b *batch, f family) {
	b.addTable(tableName, "rules for kube-proxy")
	for _, c := range baseChains {
		b.addChain(c.name, "", &c.hook)
		b.flushChain(c.name)
	}
	made := map[string]bool{}
	for _, j := range jumps {
		if !made[j.to] {
			made[j.to] = true
			b.addChain(j.to, "", nil)
			b.flushChain(j.to)
		}
		exprs := slices.Concat(ctNew(), one(jump(j.to)))
		if !j.newOnly {
			exprs = one(jump(j.to))
		}
		b.addRule(j.from, "", exprs...)
	}
	for _, c := range containers {
		b.setID++
		b.addSet(c.spec(f, b.setID))
	}
	b.setID++
	b.addSet(container{setNodePortIPs, false, addrOnly, "IPs that accept NodePort traffic"}.spec(f, b.setID))
	b.flushSet(setNodePortIPs)
	var nodeIPs []element
	for _, a := range nodeAddresses(t.node, f) {
		nodeIPs = append(nodeIPs, element{key: string(keyAddr(a))})
	}
	b.elements(unix.NFT_MSG_NEWSETELEM, setNodePortIPs, 0, nodeIPs)

	b.addRule(chainMasquerading, "", slices.Concat(clearMark(), one(masquerade()))...)
	b.addRule(chainMasquerading, "", slices.Concat(ctDNATed(), f.load(partSaddr, partDaddr, partProto, partDport), one(inSet(setHairpin), masquerade()))...)

	b.addRule(chainClusterIPsCheck, "Reject traffic to invalid ports of ClusterIPs", slices.Concat(f.load(partDaddr), one(inSet(setClusterIPs), f.reject()))...)
	for _, p := range t.serviceCIDRs {
		if collect.FamilyOf(p.Addr()) == f.name {
			b.addRule(chainClusterIPsCheck, "Drop traffic to unallocated ClusterIPs", slices.Concat(f.inPrefix(partDaddr, p, false), one(drop()))...)
		}
	}

	b.addChain(chainReject, "helper for @no-endpoint-services / @no-endpoint-nodeports", nil)
	b.flushChain(chainReject)
	b.addRule(chainReject, "", f.reject())
	b.addRule(chainServiceEndpoints, "", slices.Concat(f.load(partDaddr, partProto, partDport), one(vmap(mapNoEndpointServices, 0)))...)
	b.addRule(chainNodePortEndpoints, "", slices.Concat(f.load(partDaddr), one(inSet(setNodePortIPs)), f.load(partProto, partDport), one(vmap(mapNoEndpointNodePorts, 0)))...)
	b.addRule(chainFirewallCheck, "", slices.Concat(f.load(partDaddr, partProto, partDport), one(vmap(mapFirewallIPs, 0)))...)

	if cidr, ok := podRange(t.clusterCIDRs, f); ok {
		b.addRule(chainServices, "masquerade clusterIP traffic from outside cluster", slices.Concat(f.load(partDaddr), one(inSet(setClusterIPs)), f.inPrefix(partSaddr, cidr, true), markMasquerade())...)
	}
	b.addRule(chainServices, "", slices.Concat(f.load(partDaddr, partProto, partDport), one(vmap(mapServiceIPs, 0)))...)
	b.addRule(chainServices, "", slices.Concat(f.load(partDaddr), one(inSet(setNodePortIPs)), f.load(partProto, partDport), one(vmap(mapServiceNodePorts, 0)))...)
}

// nodeAddresses are those of the node in the family, less loopback.
func nodeAddresses(node desired.NodeRef, f family) []netip.Addr {
	var out []netip.Addr
	for _, a := range node.Addresses {
		if a = a.Unmap(); collect.FamilyOf(a) == f.name && !a.IsLoopback() {
			out = append(out, a)
		}
	}
	slices.SortFunc(out, netip.Addr.Compare)
	return slices.Compact(out)
}

// podRange is the range of pod addresses, if it is known in the family.
func podRange(cidrs []netip.Prefix, f family) (netip.Prefix, bool) {
	for _, p := range cidrs {
		if collect.FamilyOf(p.Addr()) == f.name {
			return p, true
		}
	}
	return netip.Prefix{}, false
}
