package rulesync

import (
	"encoding/binary"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/engine/desired"
	"github.com/kconverge/kconverge/engine/lab/nodes"
)

// flatNode is a node with a flat table on it and no syncer.
func flatNode(t testing.TB) (*nodes.Node, *flatTable, desired.NodeRef) {
	t.Helper()
	n, table, ref := nodeWith(t, Flat)
	return n, table.(*flatTable), ref
}

// sent plans a change and counts what would be sent: messages by type, elements
// for those that carry any.
func (t *flatTable) sent(ch Change) map[uint16]int {
	st := t.families[0]
	w := &work{batch: batch{family: st.family.proto, table: flatTableName}}
	touched := newFlatTouched()
	for name, ports := range ch.Services {
		st.own(name, t.layout(st.family, ports), touched)
	}
	st.plan(w, touched)
	out := map[uint16]int{}
	for _, m := range parse(w.batch.buf) {
		typ, n := m.typ&0xff, 1
		if typ == unix.NFT_MSG_NEWSETELEM || typ == unix.NFT_MSG_DELSETELEM {
			n = elementsIn(m.data[4:])
		}
		out[typ] += n
	}
	return out
}

func elementsIn(attrs []byte) (n int) {
	for len(attrs) >= 4 {
		size, typ := int(binary.NativeEndian.Uint16(attrs)), binary.NativeEndian.Uint16(attrs[2:])&^uint16(unix.NLA_F_NESTED)
		if typ == unix.NFTA_SET_ELEM_LIST_ELEMENTS {
			for list := attrs[4:size]; len(list) >= 4; n++ {
				list = list[min(len(list), int(binary.NativeEndian.Uint16(list)+3)&^3):]
			}
		}
		attrs = attrs[min(len(attrs), (size+3)&^3):]
	}
	return n
}

func TestAChangeOfEndpointsIsAFewElementsAndNoRules(t *testing.T) {
	const add, del = unix.NFT_MSG_NEWSETELEM, unix.NFT_MSG_DELSETELEM
	for _, c := range []struct {
		what   string
		change func([]collect.SliceEndpoint) []collect.SliceEndpoint
		want   map[uint16]int
	}{
		{"replace one", func(e []collect.SliceEndpoint) []collect.SliceEndpoint {
			e[4].Address = netip.MustParseAddr("10.244.9.9")
			return e
		}, map[uint16]int{add: 1, del: 1}},
		{"grow by one", func(e []collect.SliceEndpoint) []collect.SliceEndpoint {
			e9 := e[0]
			e9.Address = netip.MustParseAddr("10.244.9.9")
			return append(e, e9)
		}, map[uint16]int{add: 2, del: 1}},
		{"the last goes", func(e []collect.SliceEndpoint) []collect.SliceEndpoint { return e[:9] }, map[uint16]int{add: 1, del: 2}},
		{"the first goes", func(e []collect.SliceEndpoint) []collect.SliceEndpoint { return e[1:] }, map[uint16]int{add: 2, del: 3}},
	} {
		_, table, ref := flatNode(t)
		// Other counts exist already, so no set is to be made.
		w, name := manyServices(3, 10), types.NamespacedName{Namespace: "default", Name: "svc-1"}
		for i, n := range map[string]int{"svc-0": 9, "svc-2": 11} {
			o := w[types.NamespacedName{Namespace: "default", Name: i}].slices[0]
			o.Endpoints = append(o.Endpoints, collect.SliceEndpoint{Address: netip.MustParseAddr("10.244.8.8"), Ready: true, Serving: true})[:n]
		}
		sl := w[name].slices[0]
		for i := range sl.Endpoints {
			// In the order of their addresses, as places are given out first.
			sl.Endpoints[i].Address = netip.AddrFrom4([4]byte{10, 244, 1, byte(i + 10)})
			sl.Endpoints[i].Node = "node-9"
		}
		if _, err := table.Write(t.Context(), w.change(true, ref)); err != nil {
			t.Fatal(err)
		}
		sl.Endpoints = c.change(slices.Clone(sl.Endpoints))
		if got := table.sent(w.change(false, ref, name)); !maps.Equal(got, c.want) {
			t.Errorf("%s: messages %v, want %v", c.what, got, c.want)
		}
	}
}

func TestNftListsTheFlatLayout(t *testing.T) {
	n, table, ref := flatNode(t)
	w := shapes()
	if _, err := table.Write(t.Context(), w.change(true, ref)); err != nil {
		t.Fatal(err)
	}
	out, err := n.Exec(t.Context(), "nft", "list", "ruleset")
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{
		"numgen random mod 2 map @endpoints",
		"ct mark . ip saddr @clients-10800-0 jump stay-10800-0",
		"update @clients-10800-1 { ct mark . ip saddr } dnat",
		"ip daddr . meta l4proto . th dport @affinity-mod-3 ip daddr . meta l4proto . th dport . numgen random mod 3 vmap @affinity-choices",
		"192.0.2.11 . tcp . 80 . 203.0.113.0/24",
		"10.96.1.2 . tcp . 80 . 0x00000000 comment \"default/one\" : 10.244.1.2 . 8080",
	} {
		if !strings.Contains(string(out), part) {
			t.Errorf("nft does not list %q:\n%s", part, out)
		}
	}
}

func TestANodePortWithoutAnAddressOfTheNodeIsRefusedByName(t *testing.T) {
	_, table, ref := flatNode(t)
	w := world{{Namespace: "default", Name: "six"}: {service: &collect.Service{
		Kind: "NodePort", Families: []collect.Family{collect.IPv6}, ClusterIPs: []netip.Addr{netip.MustParseAddr("fd00:96::1")},
		Ports: []collect.ServicePort{{Protocol: collect.TCP, Port: 80, NodePort: 30080}},
	}}}
	res, err := table.Write(t.Context(), w.change(true, ref))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(res.Note, "default/six has a NodePort") || !strings.Contains(res.Note, "none in IPv6") {
		t.Errorf("note %q", res.Note)
	}
}
