package noderules

import (
	"flag"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/mdlayher/netlink"
)

var update = flag.Bool("update", false, "write the captured netlink messages in testdata/rules anew")

// scaleScript scales default/web from three endpoints to four and default/one
// from one to none, and adds a Service: one transaction, with maps replaced
// under the names of others.
func scaleScript() string {
	added := chainName("service", "shop/new/tcp/http")
	return `flush chain ip kube-proxy ` + webChain + `
flush chain ip kube-proxy ` + oneChain + `
add chain ip kube-proxy ` + added + `
flush chain ip kube-proxy ` + added + `
add element ip kube-proxy cluster-ips { 10.96.0.20 }
add element ip kube-proxy service-ips { 10.96.0.20 . tcp . 80 : goto ` + added + ` }
delete element ip kube-proxy service-ips { 10.96.0.11 . tcp . 80 }
add element ip kube-proxy no-endpoint-services { 10.96.0.11 . tcp . 80 comment "default/one" : goto reject-chain }
add rule ip kube-proxy ` + added + ` meta l4proto tcp dnat ip addr . port to numgen random mod 2 map { 0 : 10.244.0.20 . 80 , 1 : 10.244.1.20 . 80 }
add rule ip kube-proxy ` + webChain + ` meta l4proto tcp dnat ip addr . port to numgen random mod 4 map { 0 : 10.244.0.3 . 8080 , 1 : 10.244.1.3 . 8080 , 2 : 10.244.2.3 . 8080 , 3 : 10.244.2.4 . 8080 }
`
}

// rawDump asks for everything in kube-proxy's own table and returns the answers'
// bytes.
func rawDump(t *testing.T, n testNS, family uint8) []byte {
	return rawTable(t, n, family, "kube-proxy")
}

// rawTable is rawDump of any table.
func rawTable(t *testing.T, n testNS, family uint8, table string) (out []byte) {
	t.Helper()
	conn, err := dial(n.fd)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	var sets []string
	ask := func(kind uint8, flags netlink.HeaderFlags, attrs ...netlink.Attribute) {
		b, err := netlink.MarshalAttributes(attrs)
		if err != nil {
			t.Fatal(err)
		}
		msgs, err := conn.Execute(netlink.Message{
			Header: netlink.Header{Type: netlink.HeaderType(subsysNFTables<<8 | uint16(kind)), Flags: netlink.Request | flags},
			Data:   append([]byte{family, 0, 0, 0}, b...),
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range msgs {
			b, err := m.MarshalBinary()
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, b...)
			if d, ok, err := decode(uint16(m.Header.Type), m.Data); err == nil && ok && d.kind == msgNewSet {
				sets = append(sets, d.set)
			}
		}
	}
	ask(msgGetTable, netlink.Dump)
	ask(msgGetChain, netlink.Dump)
	ask(msgGetRule, netlink.Dump, text(attrRuleTable, table))
	ask(msgGetSet, netlink.Dump, text(attrSetTable, table))
	for _, name := range sets {
		ask(msgGetSetElem, netlink.Dump, text(attrElemListTable, table), text(attrElemListSet, name))
	}
	ask(msgGetGen, 0)
	return out
}

func TestTheKernelSaysWhatWasCaptured(t *testing.T) {
	for _, family := range []string{"ip", "ip6"} {
		n := newNS(t)
		n.nft(t, fixture(t, "kube-proxy-1.37-base-"+family+".nft"))
		n.nft(t, fixture(t, "kube-proxy-1.37-services-"+family+".nft"))
		number := uint8(familyIPv4)
		if family == "ip6" {
			number = familyIPv6
		}
		files := map[string][]byte{"kube-proxy-1.37-services-" + family + ".nlmsg": rawDump(t, n, number)}
		if family == "ip" {
			w, err := openWatch(Options{NetNS: n.fd}.withDefaults())
			if err != nil {
				t.Fatal(err)
			}
			w.start()
			n.nft(t, scaleScript())
			var notes []byte
			for done := false; !done; {
				<-w.inbox.ready
				for _, p := range w.inbox.take() {
					notes = append(notes, p.data...)
					if err := split(p.data, func(typ, _ uint16, _ []byte) error {
						done = done || uint8(typ) == msgNewGen
						return nil
					}); err != nil {
						t.Fatal(err)
					}
				}
			}
			if err := w.close(); err != nil {
				t.Error(err)
			}
			files[scaleNotes] = notes
			files[scaledDump] = rawDump(t, n, number)
		}
		for name, b := range files {
			if *update {
				if err := os.WriteFile(rulesDir+name, b, 0o644); err != nil {
					t.Fatal(err)
				}
			}
		}
		// Handles, registers and flags differ between versions of the kernel
		// and of nft; what the bytes come to must not.
		base := messages(t, files["kube-proxy-1.37-services-"+family+".nlmsg"])
		if diff := cmp.Diff(fixture(t, "kube-proxy-1.37-services-"+family+".want"), render(newTracker(build(t, base)).ports())); diff != "" {
			t.Errorf("%s (-want +now):\n%s", family, diff)
		}
		if family == "ip" {
			tr := newTracker(build(t, base))
			var changed string
			for _, m := range messages(t, files[scaleNotes]) {
				g, err := tr.add(m)
				if err != nil {
					t.Fatal(err)
				}
				if g != nil {
					changed += render(g.ports)
				}
			}
			if diff := cmp.Diff(scaled, changed); diff != "" {
				t.Errorf("scaled (-want +now):\n%s", diff)
			}
			if diff := cmp.Diff(render(newTracker(build(t, messages(t, files[scaledDump]))).ports()), render(tr.ports())); diff != "" {
				t.Errorf("scaled (-dumped +followed):\n%s", diff)
			}
		}
	}
}
