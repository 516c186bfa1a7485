package rulesync

import (
	"encoding/binary"
	"net/netip"
	"slices"

	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kconverge/kconverge/collect"
)

// Source ranges in the flat layout: a frontend in the set firewalled is reached
// only from where the set sources lets it, by ranges of addresses behind the
// frontend's key. They are looked at before the destination is changed, as
// kube-proxy's firewall chains are.
const (
	flatFirewalled = "firewalled"
	flatSources    = "sources"
)

// Attributes of a set of concatenated ranges, and its flag, that
// golang.org/x/sys/unix lacks (include/uapi/linux/netfilter/nf_tables.h).
const (
	nftaSetDescConcat = 2
	nftaSetFieldLen   = 1
	nftSetConcat      = 0x80
)

// sourceSets describe both sets.
func sourceSets(f family) []setSpec {
	key, keyLen := ipProtoPort(f)
	return []setSpec{
		{name: flatFirewalled, keyType: key, keyLen: keyLen, comment: "frontends that are subject to LoadBalancerSourceRanges"},
		{
			name: flatSources, flags: unix.NFT_SET_INTERVAL | nftSetConcat, fields: []uint32{f.addrLen, 1, 2, f.addrLen},
			keyType: key<<6 | f.addrType, keyLen: keyLen + f.addrLen, comment: "where they may be reached from",
		},
	}
}

// setupSources fills the chain that new connections pass first.
func (f family) setupSources(b *batch) {
	for _, from := range []string{chainFilterPreroutingPreDNAT, chainFilterOutputPreDNAT} {
		b.addRule(from, "", slices.Concat(ctNew(), one(jump(chainFirewallCheck)))...)
	}
	b.addRule(chainFirewallCheck, "", slices.Concat(f.key(), one(inSet(flatFirewalled)), f.load(partDaddr, partProto, partDport, partSaddr),
		one(&expr.Lookup{SourceRegister: reg(0), SetName: flatSources, Invert: true}, drop()))...)
}

// sourceElements are a frontend's elements of the set sources: the slot's key is
// where a range starts and, behind it, where it ends.
func sourceElements(key string, prefixes []netip.Prefix) []slot {
	var out []slot
	for _, r := range collect.RangesOf(prefixes) {
		out = append(out, slot{flatSources, key + string(keyAddr(r.From)) + key + string(keyAddr(r.To))})
	}
	return out
}

// isRange tells the containers whose slots have two keys.
func isRange(container string) bool { return container == flatSources }

// ownSources notes what a Service wants now, and which frontends that concerns.
func (st *flatState) ownSources(name types.NamespacedName, old, now flatRules, keys map[string]bool) {
	for k := range old.sources {
		keys[k] = true
		disown(st.sourceOwners, k, name)
	}
	for k, ranges := range now.sources {
		keys[k] = true
		if st.sourceOwners[k] == nil {
			st.sourceOwners[k] = map[types.NamespacedName][]netip.Prefix{}
		}
		st.sourceOwners[k][name] = ranges
	}
}

// planSources adds what the frontends had and want of the set sources.
func (st *flatState) planSources(keys map[string]bool, slots map[slot]bool, want map[slot]value) {
	for k := range keys {
		for _, s := range st.sources[k] {
			slots[s] = true
		}
		delete(st.sources, k)
		ranges, ok := first(st.sourceOwners[k])
		if !ok {
			continue
		}
		st.sources[k] = sourceElements(k, ranges)
		for _, s := range st.sources[k] {
			slots[s] = true
			want[s] = value{}
		}
	}
}

// readSource notes an element of the set sources that the kernel has.
func (st *flatState) readSource(s slot) {
	n := int(st.family.addrLen + 8)
	if len(s.key) >= n {
		st.sources[s.key[:n]] = append(st.sources[s.key[:n]], s)
	}
}

// fieldLengths writes how long the parts of a concatenated key are, without
// which there are no ranges in it.
func (b *batch) fieldLengths(fields []uint32) {
	b.nest(nftaSetDescConcat, func() {
		for _, n := range fields {
			b.nest(unix.NFTA_LIST_ELEM, func() { b.bytes(nftaSetFieldLen, binary.BigEndian.AppendUint32(nil, n)) })
		}
	})
}
