package timeline

import (
	"cmp"
	"slices"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/engine/desired"
)

// val stands for what a plane holds of one endpoint: its conditions and ports,
// or the routed sets that it is in. Two values of one Service are equal exactly
// when they are the same number. absent is "not there".
type val int32

const absent val = 0

// valInfo is what a value means.
type valInfo struct {
	// routable: new connections may go there.
	routable bool
	// fallback: not ready, but serving while it terminates, with ports.
	fallback bool
	ports    []int32
}

type valKey struct {
	prev val
	word string // a port's name and protocol, with its policy in rules
	num  int32
}

// values numbers the values of one Service.
type values struct {
	next  val
	folds map[valKey]val
	infos []valInfo // by val
}

func newValues() *values {
	return &values{folds: map[valKey]val{}, infos: make([]valInfo, 1)}
}

// fold gives the value that follows prev by one more component.
func (v *values) fold(prev val, word string, num int32) val {
	key := valKey{prev, word, num}
	if x, ok := v.folds[key]; ok {
		return x
	}
	v.next++
	v.folds[key] = v.next
	v.infos = append(v.infos, valInfo{})
	return v.next
}

func (v *values) info(x val) *valInfo { return &v.infos[x] }

// Bits of an endpoint's conditions.
const (
	bitReady = 1 << iota
	bitServing
	bitTerminating
	bitPortless // the Service has no ports, so none are needed
)

// slice gives the value of an endpoint in the slices plane (or, with ready only,
// in the legacy one). ports must be sorted.
func (v *values) slice(bits int32, ports []collect.SlicePort) val {
	x := v.fold(absent, "conditions", bits)
	for _, p := range ports {
		x = v.fold(x, p.Name+"/"+string(p.Protocol), p.Port)
	}
	info := v.info(x)
	if info.ports == nil {
		info.ports = make([]int32, 0, len(ports))
		for _, p := range ports {
			info.ports = append(info.ports, p.Port)
		}
		slices.Sort(info.ports)
		info.ports = slices.Compact(info.ports)
		usable := len(ports) > 0 || bits&bitPortless != 0
		info.routable = bits&bitReady != 0 && usable
		info.fallback = bits&bitReady == 0 && bits&bitServing != 0 && bits&bitTerminating != 0 && usable
	}
	return x
}

// rule gives the value of an endpoint in a node's rules that is in one more
// routed set (word, see ruleWord) than prev says. Sets must come in a fixed
// order.
func (v *values) rule(prev val, word string, port uint16) val {
	x := v.fold(prev, word, int32(port))
	info := v.info(x)
	if info.ports == nil {
		info.routable = true
		info.ports = append(slices.Clone(v.info(prev).ports), int32(port))
		slices.Sort(info.ports)
		info.ports = slices.Compact(info.ports)
	}
	return x
}

// ruleWord names a routed set within one Service and family.
func ruleWord(k *collect.RulePortKey) string {
	return k.Port + "/" + string(k.Protocol) + "/" + string(k.Policy)
}

func compareIDs(a, b EndpointID) int { return cmp.Or(a.IP.Compare(b.IP), cmp.Compare(a.UID, b.UID)) }

func sortSlicePorts(ports []collect.SlicePort) { desired.SortPorts(ports) }
