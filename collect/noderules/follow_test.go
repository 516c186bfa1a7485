package noderules

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/kconverge/kconverge/collect"
)

func keyText(k collect.RulePortKey) string {
	return render1(collect.RulePort{RulePortKey: k})
}

func render1(p collect.RulePort) string { return render([]collect.RulePort{p}) }

// TestFollowingEqualsResolvingAnew throws messages of captured dumps and
// notifications together in any order, with additions turned into deletions and
// the other way round, and closes generations at random: whatever the state,
// the resolution that only looked at what was touched must be that of everything.
func TestFollowingEqualsResolvingAnew(t *testing.T) {
	dump := messages(t, []byte(fixture(t, servicesDump)))
	pool := slices.Concat(dump, messages(t, []byte(fixture(t, scaleNotes))), messages(t, []byte(fixture(t, scaledDump))))
	opposite := map[uint8]uint8{
		msgNewChain: msgDelChain, msgDelChain: msgNewChain, msgNewRule: msgDelRule, msgDelRule: msgNewRule,
		msgNewSet: msgDelSet, msgDelSet: msgNewSet, msgNewSetElem: msgDelSetElem, msgDelSetElem: msgNewSetElem,
	}
	runs := 60
	if testing.Short() {
		runs = 15
	}
	for seed := range runs {
		r := rand.New(rand.NewPCG(uint64(seed), 7))
		_, tables := build(t, dump)
		tr := newTracker(1, tables)
		believed := map[string]string{}
		for _, p := range tr.ports() {
			believed[keyText(p.RulePortKey)] = render1(p)
		}
		for range 40 {
			gen := nextGen(tr.gen)
			for range 1 + r.IntN(12) {
				m := pool[r.IntN(len(pool))]
				if other, ok := opposite[m.kind]; ok && r.IntN(3) == 0 {
					m.kind = other
				}
				if m.kind == msgNewGen || m.kind == msgNewTable {
					continue
				}
				if len(m.elems) > 1 && r.IntN(2) == 0 {
					i := r.IntN(len(m.elems))
					m.elems = m.elems[i : i+1]
				}
				m.genLow = uint16(gen)
				if _, err := tr.add(m); err != nil {
					t.Fatal(err)
				}
			}
			if r.IntN(30) == 0 {
				m := message{kind: msgNewTable, family: familyIPv4, table: "kube-proxy", genLow: uint16(gen), flags: uint32(r.IntN(2))}
				if _, err := tr.add(m); err != nil {
					t.Fatal(err)
				}
			}
			g, err := tr.add(message{kind: msgNewGen, gen: gen})
			if err != nil {
				break // said to be lost
			}
			for _, p := range g.ports {
				if p.Empty() {
					delete(believed, keyText(p.RulePortKey))
				} else {
					believed[keyText(p.RulePortKey)] = render1(p)
				}
			}
			followed := tr.tables[tableKey{familyIPv4, "kube-proxy"}]
			fresh := newKubeProxy(followed.table.key)
			fresh.resolve(followed.table, touched{all: true})
			want := map[string]string{}
			for _, p := range fresh.ports() {
				want[keyText(p.RulePortKey)] = render1(p)
			}
			if diff := cmp.Diff(want, believed); diff != "" {
				t.Fatalf("seed %d, generation %d (-anew +followed):\n%s", seed, gen, diff)
			}
			wasOdd, nowOdd := fresh.unknown(), followed.resolver.unknown()
			slices.Sort(wasOdd)
			slices.Sort(nowOdd)
			if diff := cmp.Diff(wasOdd, nowOdd); diff != "" {
				t.Fatalf("seed %d, generation %d, unknown (-anew +followed):\n%s", seed, gen, diff)
			}
		}
	}
}
