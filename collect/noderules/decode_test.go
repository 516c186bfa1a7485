package noderules

import (
	"encoding/binary"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// messages decodes captured bytes.
func messages(t testing.TB, b []byte) (out []message) {
	t.Helper()
	err := split(b, func(typ, _ uint16, body []byte) error {
		m, ok, err := decode(typ, body)
		if ok {
			out = append(out, m)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// dumped builds the tables of a captured dump, and its generation.
func dumped(t testing.TB, name string) (uint32, []*table) {
	t.Helper()
	return build(t, messages(t, []byte(fixture(t, name))))
}

func build(t testing.TB, dump []message) (uint32, []*table) {
	t.Helper()
	tables := map[tableKey]*table{}
	var gen uint32
	var out []*table
	for _, m := range dump {
		if m.kind == msgNewGen {
			gen = m.gen
			continue
		}
		key := tableKey{m.family, m.table}
		if tables[key] == nil {
			tables[key] = newTable(key)
			out = append(out, tables[key])
		}
		if !tables[key].apply(&m) {
			t.Fatalf("cannot follow %+v", m)
		}
	}
	return gen, out
}

const (
	servicesDump = "kube-proxy-1.37-services-ip.nlmsg"
	scaleNotes   = "kube-proxy-1.37-scale-ip.nlmsg"
	scaledDump   = "kube-proxy-1.37-scaled-ip.nlmsg"
)

func TestACapturedDumpDecodes(t *testing.T) {
	for _, family := range []string{"ip", "ip6"} {
		tr := newTracker(dumped(t, "kube-proxy-1.37-services-"+family+".nlmsg"))
		if diff := cmp.Diff(fixture(t, "kube-proxy-1.37-services-"+family+".want"), render(tr.ports())); diff != "" {
			t.Errorf("%s (-want +got):\n%s", family, diff)
		}
		if len(tr.odd) > 0 || tr.layout() != "kube-proxy-nftables" {
			t.Errorf("%s: unknown %q, layout %q", family, tr.odd, tr.layout())
		}
	}
}

const scaled = `default/one: TCP IPv4 Cluster [ClusterIP 10.96.0.11:80] ->
default/web:http TCP IPv4 Cluster [ClusterIP 10.96.0.10:80] -> 10.244.0.3:8080 10.244.1.3:8080 10.244.2.3:8080 10.244.2.4:8080
shop/new:http TCP IPv4 Cluster [ClusterIP 10.96.0.20:80] -> 10.244.0.20:80 10.244.1.20:80
`

func TestCapturedNotificationsGiveOneGeneration(t *testing.T) {
	gen, tables := dumped(t, servicesDump)
	tr := newTracker(gen, tables)
	var got []*generation
	for _, m := range messages(t, []byte(fixture(t, scaleNotes))) {
		g, err := tr.add(m)
		if err != nil {
			t.Fatal(err)
		}
		if g != nil {
			got = append(got, g)
		}
	}
	if len(got) != 1 || got[0].id != nextGen(gen) || got[0].process != "nft" || got[0].oddChanged {
		t.Fatalf("generations %+v", got)
	}
	if diff := cmp.Diff(scaled, render(got[0].ports)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	after := newTracker(dumped(t, scaledDump))
	if diff := cmp.Diff(render(after.ports()), render(tr.ports())); diff != "" {
		t.Errorf("(-dumped afterwards +followed):\n%s", diff)
	}
}

func TestAnyLastPartOfTheDumpsGenerationChangesNothingWhenAppliedAgain(t *testing.T) {
	notes := messages(t, []byte(fixture(t, scaleNotes)))
	for cut := range notes {
		tr := newTracker(dumped(t, scaledDump))
		want := render(tr.ports())
		var closed *generation
		for _, m := range notes[cut:] {
			g, err := tr.add(m)
			if err != nil {
				t.Fatalf("from message %d: %v", cut, err)
			}
			if g != nil {
				closed = g
			}
		}
		if closed == nil || closed.changes() || render(tr.ports()) != want {
			t.Fatalf("from message %d: %+v\n%s", cut, closed, render(tr.ports()))
		}
	}
}

func TestOnlyTheNextGenerationIsFollowed(t *testing.T) {
	note := func(gen uint32) message { return message{kind: msgNewGen, gen: gen} }
	chain := func(gen uint32) message {
		return message{kind: msgNewChain, family: familyIPv4, table: "kube-proxy", chain: "x", handle: 99, genLow: uint16(gen)}
	}
	tests := []struct {
		name string
		at   uint32
		in   []message
		gens []uint32
		lost string
	}{
		{"older ones are part of the dump", 7, []message{chain(5), note(5), chain(6), note(6)}, nil, ""},
		{"the dump's own may come again, once", 7, []message{note(7), note(8), note(8)}, []uint32{7, 8}, ""},
		{"the next one", 7, []message{chain(8), note(8), note(9)}, []uint32{8, 9}, ""},
		{"ids wrap around and leave 0 out", 0xffffffff, []message{chain(1), note(1)}, []uint32{1}, ""},
		{"a jump is a loss", 7, []message{note(9)}, nil, "generation 9 came after 7"},
		{"messages of another generation are a loss", 7, []message{chain(7), chain(8), note(8)}, nil, "messages of another generation came before the end of generation 8"},
		{"other tables' messages do not count", 7, []message{{kind: msgNewChain, family: familyIPv4, table: "other", genLow: 3}, note(8)}, []uint32{8}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, tables := dumped(t, servicesDump)
			tr := newTracker(tt.at, tables)
			var gens []uint32
			var lost string
			for _, m := range tt.in {
				g, err := tr.add(m)
				if l, ok := errors.AsType[*lostTrack](err); ok {
					lost = l.why
				} else if err != nil {
					t.Fatal(err)
				}
				if g != nil {
					gens = append(gens, g.id)
				}
			}
			if !slices.Equal(gens, tt.gens) || lost != tt.lost {
				t.Errorf("generations %v, lost %q; want %v, %q", gens, lost, tt.gens, tt.lost)
			}
		})
	}
}

func TestCutBytesAreAnErrorAndNeverAPanic(t *testing.T) {
	whole := []byte(fixture(t, scaleNotes))
	borders := map[int]bool{0: true}
	for at := 0; at < len(whole); {
		at += (int(binary.NativeEndian.Uint32(whole[at:])) + 3) &^ 3
		borders[min(at, len(whole))] = true
	}
	for n := range len(whole) {
		err := split(whole[:n], func(typ, _ uint16, body []byte) error {
			_, _, err := decode(typ, body)
			return err
		})
		if (err == nil) != borders[n] {
			t.Fatalf("%d of %d bytes: error %v, at a border %v", n, len(whole), err, borders[n])
		}
	}
}

func TestWhatIsNotNFTablesIsPassedOver(t *testing.T) {
	if _, ok, err := decode(0x0101, []byte{0}); ok || err != nil {
		t.Errorf("decoded as nf_tables: %v, %v", ok, err)
	}
	if _, _, err := decode(subsysNFTables<<8|msgNewRule, []byte{1, 2}); !errors.Is(err, errShort) {
		t.Errorf("two bytes: %v", err)
	}
}

// FuzzNotifications feeds arbitrary datagrams to a tracker that stands at a
// captured dump. Nothing may panic, and what was followed must be what a fresh
// resolution of the same tables says.
func FuzzNotifications(f *testing.F) {
	notes := []byte(fixture(f, scaleNotes))
	f.Add(notes)
	f.Add([]byte(fixture(f, scaledDump)))
	f.Add([]byte(fixture(f, "kube-proxy-1.37-services-ip6.nlmsg")))
	f.Add(notes[:100])
	f.Add([]byte{})
	captured := messages(f, []byte(fixture(f, servicesDump)))
	f.Fuzz(func(t *testing.T, b []byte) {
		gen, tables := build(t, captured)
		tr := newTracker(gen, tables)
		_ = split(b, func(typ, _ uint16, body []byte) error {
			m, ok, err := decode(typ, body)
			if err != nil || !ok || m.kind == msgNewGen {
				return err
			}
			_, err = tr.add(m)
			return err
		})
		next := nextGen(gen)
		for i := range tr.pending {
			tr.pending[i].genLow = uint16(next)
		}
		_, err := tr.add(message{kind: msgNewGen, gen: next})
		if err != nil {
			return // said to be lost: a fresh dump follows
		}
		for key, followed := range tr.tables {
			fresh := kubeProxyNFTables.open(key)
			fresh.resolve(followed.table, touched{all: true})
			was, now := fresh.ports(), followed.resolver.ports()
			sortPorts(was)
			sortPorts(now)
			if diff := cmp.Diff(render(was), render(now)); diff != "" {
				t.Errorf("(-fresh +followed):\n%s", diff)
			}
			wasOdd, nowOdd := fresh.unknown(), followed.resolver.unknown()
			slices.Sort(wasOdd)
			slices.Sort(nowOdd)
			if diff := cmp.Diff(wasOdd, nowOdd); diff != "" {
				t.Errorf("unknown (-fresh +followed):\n%s", diff)
			}
		}
	})
}
