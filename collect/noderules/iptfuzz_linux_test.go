package noderules

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/kconverge/kconverge/collect/netns"
)

// legacyBlocks are the blocks of a namespace with every kind of Service and
// foreign rules.
func legacyBlocks(t testing.TB) []*legacyBlock {
	t.Helper()
	n := newNS(t)
	const program = "xtables-legacy-multi"
	n.restore(t, program, "iptables-restore", iptBase)
	n.restore(t, program, "iptables-restore", iptRules(false, iptEveryKind()...))
	n.restore(t, program, "ip6tables-restore", iptBase)
	var out []*legacyBlock
	if err := netns.Do(n.fd, func() error {
		for _, f := range []struct {
			family        uint8
			domain, level int
		}{{familyIPv4, unix.AF_INET, unix.SOL_IP}, {familyIPv6, unix.AF_INET6, unix.SOL_IPV6}} {
			for _, table := range []string{"nat", "filter"} {
				b, err := readLegacy(f.family, f.domain, f.level, table)
				if err != nil {
					return err
				}
				out = append(out, b)
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return out
}

// spoil changes some bytes: any, or those of a length or an offset.
func spoil(r *rand.Rand, b []byte) []byte {
	out := slices.Clone(b)
	for range 1 + r.IntN(8) {
		at := r.IntN(len(out))
		switch r.IntN(4) {
		case 0:
			out[at] = byte(r.IntN(256))
		case 1:
			out[at] ^= 1 << r.IntN(8)
		case 2:
			if at &^= 1; at+2 <= len(out) {
				binary.NativeEndian.PutUint16(out[at:], uint16([]int{0, 1, 31, 32, 40, 112, 0xffff}[r.IntN(7)]))
			}
		default:
			out = out[:max(at, 1)]
		}
	}
	return out
}

// resolveAll puts tables through the resolvers.
func resolveAll(tables map[tableKey]*table) *tracker {
	t := newTracker(1, nil)
	t.setLegacy(tables, nil)
	return t
}

func TestASpoiledBlockOfLegacyIPTablesIsAnErrorAndNeverAPanic(t *testing.T) {
	blocks := legacyBlocks(t)
	whole := map[tableKey]*table{}
	for _, b := range blocks {
		tb, err := b.decode()
		if err != nil {
			t.Fatal(err)
		}
		whole[tb.key] = tb
	}
	if got := render(resolveAll(whole).ports()); got != iptEveryKindWant {
		t.Fatalf("the whole: %s", got)
	}
	r := rand.New(rand.NewPCG(3, 4))
	refused := 0
	for i := range 4000 {
		b := *blocks[i%len(blocks)]
		b.data = spoil(r, b.data)
		if r.IntN(4) == 0 {
			b.hooks, b.entries[r.IntN(5)] = r.Uint32(), r.Uint32N(1<<16)
		}
		if b.settle() != nil {
			refused++
			continue
		}
		tb, err := b.decode()
		if err != nil {
			refused++
			continue
		}
		tables := map[tableKey]*table{tb.key: tb}
		for key, other := range whole {
			if key != tb.key {
				tables[key] = other
			}
		}
		resolveAll(tables)
	}
	if refused == 0 {
		t.Error("nothing was refused: the blocks were not spoiled")
	}
}

func TestSpoiledMessagesOfIPTablesNeverPanic(t *testing.T) {
	n := newNS(t)
	n.restore(t, "xtables-nft-multi", "iptables-restore", iptBase)
	n.restore(t, "xtables-nft-multi", "iptables-restore", foreignRules)
	n.restore(t, "xtables-nft-multi", "iptables-restore", iptRules(false, iptEveryKind()...))
	whole := slices.Concat(rawTable(t, n, familyIPv4, "nat"), rawTable(t, n, familyIPv4, "filter"))
	tr := newTracker(build(t, messages(t, whole)))
	if got := render(tr.ports()); got != iptEveryKindWant {
		t.Fatalf("the whole: %s", got)
	}
	r := rand.New(rand.NewPCG(5, 6))
	var bodies [][]byte
	var types []uint16
	if err := split(whole, func(typ, _ uint16, body []byte) error {
		bodies, types = append(bodies, body), append(types, typ)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	gen := tr.gen
	for range 300 {
		gen = nextGen(gen)
		for range 20 {
			i := r.IntN(len(bodies))
			body := bodies[i]
			if r.IntN(3) > 0 {
				body = spoil(r, body)
			}
			m, ok, err := decode(types[i], body)
			if err != nil || !ok || m.kind == msgNewGen {
				continue
			}
			if m.kind == msgNewRule && r.IntN(3) == 0 {
				m.kind = msgDelRule
			}
			m.genLow = uint16(gen)
			if _, err := tr.add(m); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := tr.add(message{kind: msgNewGen, gen: gen}); err != nil {
			// A rename is a reason to dump anew; here: to begin anew.
			tr = newTracker(build(t, messages(t, whole)))
			gen = tr.gen
			continue
		}
		// What was followed is what the same tables come to when they are
		// resolved from the beginning.
		var tables []*table
		for _, one := range tr.tables {
			again := *one.table
			again.touched = touched{all: true}
			tables = append(tables, &again)
		}
		fresh := newTracker(gen, tables)
		if got, want := render(tr.ports()), render(fresh.ports()); got != want {
			t.Fatalf("followed:\n%s\nanew:\n%s", got, want)
		}
		if !slices.Equal(tr.odd, fresh.odd) {
			t.Fatalf("unknown, followed %q, anew %q", tr.odd, fresh.odd)
		}
		if tr.ignored() != fresh.ignored() {
			t.Fatalf("ignored, followed %d, anew %d", tr.ignored(), fresh.ignored())
		}
	}
}
