package noderules

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/collect/netns"
	"github.com/kconverge/kconverge/collect/noderules/nftwitness"
)

// kindsDir has what real kube-proxies of several versions and modes wrote for the
// objects of services.yaml.
const kindsDir = "kube-proxy-kinds/"

var kindCaptures = []struct {
	name    string
	layout  string
	program string // of iptables; "" for nftables mode
}{
	{"1.37-nftables", "kube-proxy-nftables", ""},
	{"1.34-nftables", "kube-proxy-nftables", ""},
	{"1.37-iptables-in-nf_tables", "kube-proxy-iptables-nft", "xtables-nft-multi"},
	{"1.34-iptables-in-nf_tables", "kube-proxy-iptables-nft", "xtables-nft-multi"},
	{"1.37-legacy-iptables", "kube-proxy-iptables-legacy", "xtables-legacy-multi"},
}

// loadKind makes a namespace with what one of them wrote.
func loadKind(t *testing.T, name, program string) testNS {
	t.Helper()
	n := newNS(t)
	if program == "" {
		n.nft(t, fixture(t, kindsDir+name+".nft"))
		return n
	}
	n.counters(t, "ct_state_invalid_dropped_pkts", "localhost_nps_accepted_pkts")
	n.run(t, fixture(t, kindsDir+name+".save"), program, "iptables-restore")
	n.run(t, fixture(t, kindsDir+name+".save6"), program, "ip6tables-restore")
	return n
}

// counters makes the named counters (nfnetlink_acct) that kube-proxy's rules use.
func (n testNS) counters(t *testing.T, names ...string) {
	t.Helper()
	conn, err := dial(n.fd)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, name := range names {
		b, err := netlink.MarshalAttributes([]netlink.Attribute{text(1 /* NFACCT_NAME */, name)})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Execute(netlink.Message{
			Header: netlink.Header{Type: unix.NFNL_SUBSYS_ACCT << 8 /* NFNL_MSG_ACCT_NEW */, Flags: netlink.Request | netlink.Acknowledge | netlink.Create},
			Data:   append([]byte{unix.AF_UNSPEC, 0, 0, 0}, b...),
		}); err != nil {
			t.Fatal(err)
		}
	}
}

// rawKind is what the kernel says of it, in the form that is decoded.
func rawKind(t *testing.T, n testNS, program string) []byte {
	t.Helper()
	var out bytes.Buffer
	for _, family := range []uint8{familyIPv4, familyIPv6} {
		switch program {
		case "":
			out.Write(rawTable(t, n, family, "kube-proxy"))
		case "xtables-nft-multi":
			out.Write(rawTable(t, n, family, "nat"))
			out.Write(rawTable(t, n, family, "filter"))
		default:
			domain, level := unix.AF_INET, unix.SOL_IP
			if family == familyIPv6 {
				domain, level = unix.AF_INET6, unix.SOL_IPV6
			}
			for _, name := range []string{"nat", "filter"} {
				var b *legacyBlock
				if err := netns.Do(n.fd, func() (err error) {
					b, err = readLegacy(family, domain, level, name)
					return err
				}); err != nil {
					t.Fatal(err)
				}
				writeBlock(t, &out, b)
			}
		}
	}
	return out.Bytes()
}

// blockHead stands before each block in a file.
type blockHead struct {
	Family  uint32
	Table   [32]byte
	Hooks   uint32
	Entries [5]uint32
	Size    uint32
}

func writeBlock(t *testing.T, w io.Writer, b *legacyBlock) {
	t.Helper()
	h := blockHead{Family: uint32(b.family), Hooks: b.hooks, Entries: b.entries, Size: uint32(len(b.data))}
	copy(h.Table[:], b.table)
	if err := errors.Join(binary.Write(w, binary.LittleEndian, h), binary.Write(w, binary.LittleEndian, b.data)); err != nil {
		t.Fatal(err)
	}
}

func readBlocks(t testing.TB, raw []byte) (out []*legacyBlock) {
	t.Helper()
	for r := bytes.NewReader(raw); r.Len() > 0; {
		var h blockHead
		err := binary.Read(r, binary.LittleEndian, &h)
		data := make([]byte, h.Size)
		_, more := io.ReadFull(r, data)
		if err := errors.Join(err, more); err != nil {
			t.Fatal(err)
		}
		name, _, _ := strings.Cut(string(h.Table[:]), "\x00")
		out = append(out, &legacyBlock{family: uint8(h.Family), table: name, hooks: h.Hooks, entries: h.Entries, data: data})
	}
	return out
}

// trackedKind decodes the bytes of a file.
func trackedKind(t testing.TB, program string, raw []byte) *tracker {
	t.Helper()
	if program != "xtables-legacy-multi" {
		return newTracker(build(t, messages(t, raw)))
	}
	tables := map[tableKey]*table{}
	for _, b := range readBlocks(t, raw) {
		if err := b.settle(); err != nil {
			t.Fatal(err)
		}
		tb, err := b.decode()
		if err != nil {
			t.Fatal(err)
		}
		tables[tb.key] = tb
	}
	tr := newTracker(1, nil)
	tr.setLegacy(tables, nil)
	return tr
}

// TestWhatEveryKindOfKubeProxyWroteDecodes compares, for each of them, the bytes
// in the file, what this kernel says, what nft or iptables-save print, and what
// is expected.
func TestWhatEveryKindOfKubeProxyWroteDecodes(t *testing.T) {
	for _, k := range kindCaptures {
		t.Run(k.name, func(t *testing.T) {
			n := loadKind(t, k.name, k.program)
			var seen []collect.RulePort
			if k.program == "" {
				for _, p := range nftwitness.Ports(t, n.list(t)) {
					if !p.Empty() {
						seen = append(seen, p)
					}
				}
			} else {
				seen = n.saved(t, k.program)
			}
			if *update {
				for file, b := range map[string][]byte{".raw": rawKind(t, n, k.program), ".want": []byte(render(seen))} {
					if err := os.WriteFile(rulesDir+kindsDir+k.name+file, b, 0o644); err != nil {
						t.Fatal(err)
					}
				}
			}
			want := fixture(t, kindsDir+k.name+".want")
			if diff := cmp.Diff(want, render(seen)); diff != "" {
				t.Errorf("the witness (-want +seen):\n%s", diff)
			}
			got := read(t, n)
			if diff := cmp.Diff(want, render(got.Ports)); diff != "" {
				t.Errorf("read (-want +got):\n%s", diff)
			}
			if got.Layout != k.layout || len(got.Unknown) > 0 || got.Ignored > 0 {
				t.Errorf("layout %q, unknown %q, ignored %d", got.Layout, got.Unknown, got.Ignored)
			}
			tr := trackedKind(t, k.program, []byte(fixture(t, kindsDir+k.name+".raw")))
			if diff := cmp.Diff(want, render(tr.ports())); diff != "" {
				t.Errorf("of the file (-want +got):\n%s", diff)
			}
			if tr.layout() != k.layout || len(tr.odd) > 0 {
				t.Errorf("of the file: layout %q, unknown %q", tr.layout(), tr.odd)
			}
		})
	}
	// All of them were given the same objects: but for what a layout cannot
	// tell, they say the same.
	plain := func(name string) string {
		lines := strings.Split(fixture(t, kindsDir+name+".want"), "\n")
		for i, l := range lines {
			key, fronts, _ := strings.Cut(l, " [")
			fronts, eps, _ := strings.Cut(fronts, "] ->")
			f := strings.Split(strings.ReplaceAll(fronts, "LoadBalancer", "ExternalIP"), ", ")
			slices.Sort(f)
			if eps == "" || strings.HasPrefix(eps, " from ") {
				eps = "" // iptables has no firewall chain then
			}
			lines[i] = key + " [" + strings.Join(f, ", ") + "] ->" + eps
		}
		return strings.Join(lines, "\n")
	}
	for _, k := range kindCaptures[1:] {
		if diff := cmp.Diff(plain(kindCaptures[0].name), plain(k.name)); diff != "" {
			t.Errorf("%s and %s (-+):\n%s", kindCaptures[0].name, k.name, diff)
		}
	}
}
