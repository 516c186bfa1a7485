package rulesync

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// rules are what the table holds for one Service in one family: chains with
// their content, in order, and elements of the shared containers.
type rules struct {
	chains   []chain
	affinity []affinitySet
	elements map[slot]target
}

// chain is one of a Service's chains. fill writes its rules.
type chain struct {
	name string
	fill func(*batch)
}

// affinitySet remembers which clients were sent to an endpoint.
type affinitySet struct {
	name      string
	timeoutMS uint64
}

// slot is the place of an element: which container, which key.
type slot struct{ container, key string }

// target is what an element says.
type target struct {
	verdict verdict
	comment string
}

// layout says what kube-proxy would write for a Service's ports (syncProxyRules
// in pkg/proxy/nftables/proxier.go).
func (t *kernelTable) layout(f family, ports []Port) rules {
	r := rules{elements: map[slot]target{}}
	for i := range ports {
		if p := &ports[i]; p.Family == f.name {
			t.layoutPort(f, p, &r)
		}
	}
	return r
}

func (t *kernelTable) layoutPort(f family, p *Port, r *rules) {
	base := portBase(p)
	cluster, local, external := prefixCluster+base, prefixLocal+base, prefixExternal+base
	internalChain, externalPolicyChain := cluster, cluster
	hasInternal, hasExternal := p.HasEndpoints, p.HasEndpoints
	if p.InternalLocal {
		internalChain, hasInternal = local, p.HasEndpoints && len(p.Local) > 0
	}
	if p.ExternalLocal {
		externalPolicyChain, hasExternal = local, p.HasEndpoints && len(p.Local) > 0
	}
	t.frontends(p, r, internalChain, external, hasInternal, hasExternal)
	for _, ep := range p.OnNode {
		r.elements[slot{setHairpin, string(slices.Concat(keyAddr(ep.Addr()), keyAddr(ep.Addr()), keyProto(p.Protocol), keyPort(ep.Port())))}] = target{}
	}

	if len(p.Cluster) > 0 {
		r.chains = append(r.chains, f.policyChain(p, cluster, p.Cluster))
	}
	if len(p.Local) > 0 {
		r.chains = append(r.chains, f.policyChain(p, local, p.Local))
	}
	if p.HasEndpoints && p.External() {
		r.chains = append(r.chains, t.externalChain(f, p, external, cluster, externalPolicyChain, hasExternal))
	}
	if len(p.Sources) > 0 {
		firewall := prefixFirewall + base
		for _, ip := range p.LoadBalancerIPs {
			k := string(slices.Concat(keyAddr(ip), keyProto(p.Protocol), keyPort(p.Port)))
			r.elements[slot{mapFirewallIPs, k}] = target{verdict: verdict{chain: firewall}}
		}
		r.chains = append(r.chains, f.firewallChain(p, firewall))
	}
	if p.Affinity {
		r.endpointChains(f, p)
	}
}

// frontends are the elements that lead to a port's chains or, without
// endpoints, turn connections away: rejected when there are none at all,
// dropped when they are only on other nodes.
func (t *kernelTable) frontends(p *Port, r *rules, internalChain, externalChain string, hasInternal, hasExternal bool) {
	away := verdict{chain: chainReject}
	if p.HasEndpoints {
		away = verdict{drop: true}
	}
	key := func(a netip.Addr) string {
		return string(slices.Concat(keyAddr(a), keyProto(p.Protocol), keyPort(p.Port)))
	}
	r.elements[slot{setClusterIPs, string(keyAddr(p.ClusterIP))}] = target{}
	if hasInternal {
		r.elements[slot{mapServiceIPs, key(p.ClusterIP)}] = target{verdict: verdict{chain: internalChain}}
	} else {
		r.elements[slot{mapNoEndpointServices, key(p.ClusterIP)}] = target{away, portComment(p)}
	}
	for _, ip := range slices.Concat(p.ExternalIPs, p.LoadBalancerIPs) {
		if p.HasEndpoints {
			r.elements[slot{mapServiceIPs, key(ip)}] = target{verdict: verdict{chain: externalChain}}
		}
		if !hasExternal {
			r.elements[slot{mapNoEndpointServices, key(ip)}] = target{away, portComment(p)}
		}
	}
	if p.NodePort != 0 {
		k := string(slices.Concat(keyProto(p.Protocol), keyPort(p.NodePort)))
		if p.HasEndpoints {
			r.elements[slot{mapServiceNodePorts, k}] = target{verdict: verdict{chain: externalChain}}
		}
		if !hasExternal {
			r.elements[slot{mapNoEndpointNodePorts, k}] = target{away, portComment(p)}
		}
	}
}

// externalChain takes what comes for NodePorts, external and load balancer
// addresses.
func (t *kernelTable) externalChain(f family, p *Port, name, cluster, policyChain string, hasExternal bool) chain {
	pods, knowsPods := podRange(t.clusterCIDRs, f)
	return chain{name, func(b *batch) {
		if !p.ExternalLocal {
			b.addRule(name, "masquerade", markMasquerade()...)
		} else {
			if knowsPods {
				b.addRule(name, "short-circuit pod traffic", slices.Concat(f.inPrefix(partSaddr, pods, false), one(goTo(cluster)))...)
			}
			b.addRule(name, "masquerade local traffic", slices.Concat(fromThisHost(), markMasquerade())...)
			b.addRule(name, "short-circuit local traffic", slices.Concat(fromThisHost(), one(goTo(cluster)))...)
		}
		if hasExternal {
			b.addRule(name, "", goTo(policyChain))
		}
	}}
}

// policyChain spreads connections over endpoints.
func (f family) policyChain(p *Port, name string, eps []netip.AddrPort) chain {
	if p.Affinity {
		return f.affinityChain(p, name, eps)
	}
	return chain{name, func(b *batch) {
		if len(eps) == 1 {
			b.addRule(name, "", slices.Concat(isProto(p.Protocol), f.dnatTo(eps[0]))...)
			return
		}
		elems := make([]element, len(eps))
		for i, ep := range eps {
			elems[i] = element{key: string(host32(uint32(i))), data: addrPortValue(ep)}
		}
		b.setID++
		id := b.setID
		b.addSet(setSpec{
			name: anonymousMap, id: id, flags: unix.NFT_SET_ANONYMOUS | unix.NFT_SET_CONSTANT | unix.NFT_SET_MAP,
			keyType: typeInteger, keyLen: 4, hostOrder: true,
			dataType: concat(f.addrType, typeService), dataLen: f.addrLen + 4, size: len(eps),
		})
		b.elements(unix.NFT_MSG_NEWSETELEM, anonymousMap, id, elems)
		b.addRule(name, "", slices.Concat(isProto(p.Protocol), f.dnatToOne(len(eps), id))...)
	}}
}

// affinityChain sends a client to where it was sent before, if that is not too
// long ago, else to one endpoint by chance.
func (f family) affinityChain(p *Port, name string, eps []netip.AddrPort) chain {
	return chain{name, func(b *batch) {
		elems := make([]element, len(eps))
		for i, ep := range eps {
			base := endpointBase(p, ep)
			b.addRule(name, "", slices.Concat(f.load(partSaddr), one(inSet(prefixAffinity+base), goTo(prefixEndpoint+base)))...)
			elems[i] = element{key: string(host32(uint32(i))), verdict: verdict{chain: prefixEndpoint + base}}
		}
		b.setID++
		id := b.setID
		b.addSet(setSpec{
			name: anonymousMap, id: id, flags: unix.NFT_SET_ANONYMOUS | unix.NFT_SET_CONSTANT | unix.NFT_SET_MAP,
			keyType: typeInteger, keyLen: 4, hostOrder: true, dataType: verdictType, size: len(eps),
		})
		b.elements(unix.NFT_MSG_NEWSETELEM, anonymousMap, id, elems)
		b.addRule(name, "", &expr.Numgen{Register: reg(0), Modulus: uint32(len(eps)), Type: unix.NFT_NG_RANDOM}, vmap(anonymousMap, id))
	}}
}

// endpointChains are needed with affinity only: each remembers the client and
// sends it on.
func (r *rules) endpointChains(f family, p *Port) {
	for _, ep := range p.reachable() {
		base := endpointBase(p, ep)
		set := prefixAffinity + base
		r.affinity = append(r.affinity, affinitySet{set, uint64(p.AffinityTimeout.Milliseconds())})
		r.chains = append(r.chains, chain{prefixEndpoint + base, func(b *batch) {
			name := prefixEndpoint + base
			b.addRule(name, "", slices.Concat(f.load(partSaddr), one(&expr.Dynset{SrcRegKey: reg(0), SetName: set, Operation: unix.NFT_DYNSET_OP_UPDATE}))...)
			b.addRule(name, "", slices.Concat(isProto(p.Protocol), f.dnatTo(ep))...)
		}})
	}
}

// write puts the Service's chains in place: first all of them, empty, since they
// go to one another, then their rules.
func (r *rules) write(b *batch, f family) {
	for _, a := range r.affinity {
		b.setID++
		b.addSet(setSpec{name: a.name, id: b.setID, flags: unix.NFT_SET_EVAL | unix.NFT_SET_TIMEOUT, keyType: f.addrType, keyLen: f.addrLen, timeoutMS: a.timeoutMS})
	}
	for _, c := range r.chains {
		b.addChain(c.name, "", nil)
		b.flushChain(c.name)
	}
	for _, c := range r.chains {
		c.fill(b)
	}
}

func drop() expr.Any { return &expr.Verdict{Kind: expr.VerdictDrop} }

func one(e ...expr.Any) []expr.Any { return e }

func compareSlots(a, b slot) int {
	return cmp.Or(cmp.Compare(a.container, b.container), cmp.Compare(a.key, b.key))
}
