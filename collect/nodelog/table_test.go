package nodelog

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"github.com/kconverge/kconverge/collect"
)

func tablePort(svc, endpoints int) collect.RulePort {
	p := collect.RulePort{RulePortKey: collect.RulePortKey{Namespace: "default", Service: fmt.Sprintf("svc%d", svc), Protocol: collect.TCP, Family: collect.IPv4, Policy: collect.PolicyCluster}}
	for i := range endpoints {
		p.Endpoints = append(p.Endpoints, netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, byte(svc), byte(i)}), 80))
	}
	return p
}

// Tables that build on each other's sheets say what plain maps say, and what nobody
// has any more is not kept.
func TestTablesThatShareSayWhatEachHas(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		k := newKnown()
		tables, plain := make([]table, 4), make([]map[string]collect.RulePort, 4)
		for i := range tables {
			tables[i], plain[i] = newTable(k), map[string]collect.RulePort{}
		}
		for range 300 {
			i := r.IntN(len(tables))
			tab := &tables[i]
			switch r.IntN(12) {
			case 0:
				tab.settle()
			case 1:
				if r.IntN(6) == 0 {
					tab.clear()
					clear(plain[i])
				}
			case 2:
				p := tablePort(r.IntN(20), r.IntN(3))
				if s := k.find(p.RulePortKey, p.Digest()); s != nil {
					tab.share(s)
					plain[i][s.name] = s.RulePort
				}
			default:
				p := tablePort(r.IntN(20), r.IntN(3))
				tab.set(p)
				if plain[i][nameOf(&p.RulePortKey)] = p; p.Empty() {
					delete(plain[i], nameOf(&p.RulePortKey))
				}
			}
			for i := range tables {
				var want []collect.RulePort
				for _, p := range plain[i] {
					want = append(want, p)
				}
				slices.SortFunc(want, func(a, b collect.RulePort) int { return a.RulePortKey.Compare(b.RulePortKey) })
				if got := tables[i].all(); !slices.EqualFunc(got, want, func(a, b collect.RulePort) bool { return a.Equal(&b) }) || tables[i].n != len(want) {
					t.Fatalf("seed %d, table %d has %d: %v, want %v", seed, i, tables[i].n, got, want)
				}
			}
		}
		for i := range tables {
			tables[i].clear()
		}
		if len(k.ports) > 0 || k.sheet != nil {
			t.Fatalf("seed %d: %d sets are kept for nobody, sheet %v", seed, len(k.ports), k.sheet)
		}
	}
}

// A node whose table is much like that of others costs what it has otherwise.
func TestATableHoldsWhatItHasForItself(t *testing.T) {
	k := newKnown()
	first, second := newTable(k), newTable(k)
	for i := range 200 {
		first.set(tablePort(i, 2))
		second.set(tablePort(i, 2))
	}
	second.set(tablePort(7, 1))
	second.set(tablePort(8, 0))
	second.set(tablePort(200, 1))
	first.settle()
	second.settle()
	if first.base != second.base || len(first.own) != 0 || len(second.own) != 3 {
		t.Errorf("one sheet: %v; %d and %d of their own, want none and 3", first.base == second.base, len(first.own), len(second.own))
	}
	if a, b := first.all(), first.all(); &a[0] != &b[0] {
		t.Error("the list of a table that is a sheet is made twice")
	}
}
