package noderules

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// writer commits changes of one element with bare batches: its return is the
// moment at which the kernel has committed, to within a system call.
type writer struct{ conn *netlink.Conn }

func newWriter(b testing.TB, n testNS) *writer {
	b.Helper()
	conn, err := dial(n.fd)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { conn.Close() })
	return &writer{conn}
}

func (w *writer) frontend(b testing.TB, present bool, addr [4]byte, port uint16, chain string) time.Time {
	b.Helper()
	nest := func(typ uint16, attrs ...netlink.Attribute) netlink.Attribute {
		data, err := netlink.MarshalAttributes(attrs)
		if err != nil {
			b.Fatal(err)
		}
		return netlink.Attribute{Type: typ | unix.NLA_F_NESTED, Data: data}
	}
	key := append(addr[:], protoTCP, 0, 0, 0, 0, 0, 0, 0)
	binary.BigEndian.PutUint16(key[8:], port)
	elem := []netlink.Attribute{nest(attrElemKey, netlink.Attribute{Type: attrDataValue, Data: key})}
	kind, flags := uint16(msgDelSetElem), netlink.Request
	if present {
		kind, flags = msgNewSetElem, netlink.Request|netlink.Create
		code := int32(verdictGoto)
		elem = append(elem, nest(attrElemData, nest(attrDataVerdict,
			netlink.Attribute{Type: attrVerdictCode, Data: binary.BigEndian.AppendUint32(nil, uint32(code))},
			text(attrVerdictChain, chain))))
	}
	body, err := netlink.MarshalAttributes([]netlink.Attribute{
		text(attrElemListTable, "kube-proxy"), text(attrElemListSet, kpServiceIPs),
		nest(attrElemListElems, nest(attrListElem, elem...)),
	})
	if err != nil {
		b.Fatal(err)
	}
	mark := func(typ netlink.HeaderType) netlink.Message {
		return netlink.Message{Header: netlink.Header{Type: typ, Flags: netlink.Request}, Data: []byte{0, 0, 0, subsysNFTables}}
	}
	_, err = w.conn.SendMessages([]netlink.Message{
		mark(unix.NFNL_MSG_BATCH_BEGIN),
		{Header: netlink.Header{Type: netlink.HeaderType(subsysNFTables<<8 | kind), Flags: flags}, Data: append([]byte{familyIPv4, 0, 0, 0}, body...)},
		mark(unix.NFNL_MSG_BATCH_END),
	})
	at := time.Now()
	if err != nil {
		b.Fatal(err)
	}
	return at
}

// BenchmarkReceipt measures how long after the writer's return a generation is
// stamped (receipt), and how long after it the resolved event is there (event).
func BenchmarkReceipt(b *testing.B) {
	n := kubeProxyNS(b)
	_, c := start(b, Options{Node: "n", NetNS: n.fd})
	_, i := c.wait(b, 0, isSynced)
	w := newWriter(b, n)
	var receipt, event []time.Duration
	present := true
	for b.Loop() {
		present = !present
		returned := w.frontend(b, present, [4]byte{10, 96, 0, 11}, 80, oneChain)
		e, at := c.wait(b, i+1, isRules)
		i = at
		event = append(event, time.Since(returned))
		receipt = append(receipt, e.At.Sub(returned))
	}
	for name, d := range map[string][]time.Duration{"receipt": receipt, "event": event} {
		slices.Sort(d)
		us := func(q float64) float64 { return float64(d[int(q*float64(len(d)-1))].Nanoseconds()) / 1e3 }
		b.ReportMetric(us(0.5), name+"-p50-µs")
		b.ReportMetric(us(0.99), name+"-p99-µs")
		b.ReportMetric(us(1), name+"-max-µs")
	}
}

// manyServices is a rule set of n Services with ten endpoints each.
func manyServices(n int) string {
	var s strings.Builder
	for i := range n {
		chain := chainName("service", fmt.Sprintf("ns%d/svc%d/tcp/http", i%50, i))
		fmt.Fprintf(&s, "add chain ip kube-proxy %s\nadd element ip kube-proxy service-ips { 10.97.%d.%d . tcp . 80 : goto %s }\n", chain, i>>8, i&255, chain)
		fmt.Fprintf(&s, "add rule ip kube-proxy %s meta l4proto tcp dnat ip addr . port to numgen random mod 10 map { ", chain)
		for j := range 10 {
			if j > 0 {
				s.WriteString(" , ")
			}
			k := i*10 + j
			fmt.Fprintf(&s, "%d : 10.%d.%d.%d . 8080", j, 128+k>>16, k>>8&255, k&255)
		}
		s.WriteString(" }\n")
	}
	return s.String()
}

// BenchmarkRead measures a consistent dump and its resolution.
func BenchmarkRead(b *testing.B) {
	for _, services := range []int{100, 1000} {
		b.Run(fmt.Sprintf("services=%d", services), func(b *testing.B) {
			n := kubeProxyNS(b)
			n.nft(b, manyServices(services))
			for b.Loop() {
				r, err := Read(context.Background(), Options{NetNS: n.fd})
				if err != nil || len(r.Ports) < services {
					b.Fatalf("%d ports: %v", len(r.Ports), err)
				}
			}
		})
	}
}

// BenchmarkGeneration measures one followed generation that touches one Service
// of many: the cost must not follow their number.
func BenchmarkGeneration(b *testing.B) {
	for _, services := range []int{100, 1000} {
		b.Run(fmt.Sprintf("services=%d", services), func(b *testing.B) {
			n := kubeProxyNS(b)
			n.nft(b, manyServices(services))
			q, err := openQuery(Options{NetNS: n.fd}.withDefaults())
			if err != nil {
				b.Fatal(err)
			}
			defer q.close()
			s, err := q.dump(context.Background(), 0)
			if err != nil {
				b.Fatal(err)
			}
			tr := newTracker(s.gen, s.tables)
			key := append([]byte{10, 96, 0, 11}, protoTCP, 0, 0, 0, 0, 80, 0, 0)
			present := true
			b.ReportAllocs()
			for b.Loop() {
				present = !present
				m := message{kind: msgDelSetElem, family: familyIPv4, table: "kube-proxy", set: kpServiceIPs, elems: []element{{key: key}}}
				if present {
					m.kind = msgNewSetElem
					m.elems[0].verdict = &verdict{code: verdictGoto, chain: oneChain}
				}
				gen := nextGen(tr.gen)
				m.genLow = uint16(gen)
				if _, err := tr.add(m); err != nil {
					b.Fatal(err)
				}
				g, err := tr.add(message{kind: msgNewGen, gen: gen})
				if err != nil || len(g.ports) != 1 {
					b.Fatalf("%+v: %v", g, err)
				}
			}
		})
	}
}
