package noderules

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/kconverge/kconverge/collect"
)

// flatLayout is kconverge's own layout (engine/rulesync): one map from address,
// protocol, port and number to endpoint, and for each count of endpoints in use
// a set of the frontends that have so many, with one rule that draws a number
// below the count. A frontend's set element says by its comment which Service
// port it belongs to: "namespace/service:port", then the kind of frontend
// unless it is the ClusterIP, then "Local" under that policy. With session
// affinity the number leads to a chain that remembers the client
// (flat_affinity.go); source ranges are in flat_sources.go.
var flatLayout = layout{
	name:   "kconverge-flat",
	tables: []tableKey{{familyIPv4, "kconverge-flat"}, {familyIPv6, "kconverge-flat"}},
	open:   func(key tableKey) resolver { return newFlat(key) },
}

const (
	flatNoEndpoints = "no-endpoints"
	flatMaps        = "endpoints" // how the names of the endpoint maps end
	flatChoices     = "choices"   // and those of the maps to seats
	flatSets        = "mod-"      // what the names of the sets of frontends have
)

// flat is the resolver of the layout. Rules change only when a count of
// endpoints is needed for the first time: then everything is resolved anew,
// otherwise what the changed elements touch.
type flat struct {
	key    tableKey
	family collect.Family

	// rules are those that choose endpoints, by the set of their frontends;
	// sets are those of each endpoint map.
	rules map[string]flatRule
	sets  map[string][]string
	// owner and fronts tie elements of the sets, and of the map of frontends
	// without endpoints, to Service ports.
	owner  map[kpElem]flatFront
	fronts map[kpPort]map[kpElem]struct{}
	// numbers are what an endpoint map has for a frontend.
	numbers map[kpElem]map[uint32]struct{}
	// seats are the chains for clients with session affinity, kept the maps of
	// their endpoints; recalls are the sets of clients that are sent to a
	// chain again.
	seats   map[string]flatSeat
	kept    map[string]bool
	recalls map[kpElem]struct{}
	// firewall drops by source; sourceKeys are the ranges of a frontend.
	firewall   flatFirewall
	sourceKeys map[string]map[string]struct{}

	current map[collect.RulePortKey]collect.RulePort
	odd     map[string][]string
}

// flatRule is a rule that sends a frontend of a set to one of count endpoints.
type flatRule struct {
	endpoints     string // the map
	choices       string // with session affinity, instead: the map to seats
	offset, count uint32
	// shortcut: only some connections get to the rule, by where they are from.
	shortcut bool
}

// flatFront is what a comment says about a frontend.
type flatFront struct {
	port   kpPort
	kind   collect.FrontendKind
	policy collect.Policy
}

func newFlat(key tableKey) *flat {
	r := &flat{key: key, family: collect.IPv4, current: map[collect.RulePortKey]collect.RulePort{}}
	if key.family == familyIPv6 {
		r.family = collect.IPv6
	}
	r.reset()
	return r
}

func (r *flat) reset() {
	r.rules, r.sets = map[string]flatRule{}, map[string][]string{}
	r.owner, r.fronts = map[kpElem]flatFront{}, map[kpPort]map[kpElem]struct{}{}
	r.numbers = map[kpElem]map[uint32]struct{}{}
	r.seats, r.kept, r.recalls = map[string]flatSeat{}, map[string]bool{}, map[kpElem]struct{}{}
	r.firewall, r.sourceKeys = flatFirewall{}, map[string]map[string]struct{}{}
	r.odd = map[string][]string{}
}

// resolve implements resolver.
func (r *flat) resolve(t *table, what touched) []collect.RulePort {
	dirty, keys := map[kpPort]struct{}{}, map[kpElem]struct{}{}
	if what.all || len(what.chains) > 0 || len(what.sets) > 0 {
		for k := range r.current {
			dirty[kpPort{k.Namespace, k.Service, k.Port, k.Protocol}] = struct{}{}
		}
		r.reset()
		r.readRules(t)
		for name, s := range t.sets {
			for key := range s.elems {
				r.touch(t, kpElem{name, key}, dirty, keys)
			}
		}
	} else {
		for set, elems := range what.elems {
			for key := range elems {
				r.touch(t, kpElem{set, key}, dirty, keys)
			}
		}
	}
	for k := range keys {
		if k.set == "" {
			r.checkKept(t, k.key)
		} else {
			r.checkNumbers(t, k)
		}
	}
	var changed []collect.RulePort
	for p := range dirty {
		for _, now := range r.resolvePort(t, p) {
			was, had := r.current[now.RulePortKey]
			if !had && now.Empty() || had && was.Equal(&now) {
				continue
			}
			if now.Empty() {
				delete(r.current, now.RulePortKey)
			} else {
				r.current[now.RulePortKey] = now
			}
			changed = append(changed, now)
		}
	}
	return changed
}

// readRules finds the rules that new connections get to and that choose an
// endpoint. A chain that is only reached behind a condition on the source is a
// shortcut.
func (r *flat) readRules(t *table) {
	always, some := map[string]bool{}, map[string]bool{}
	var visit func(chain string, conditional bool)
	visit = func(name string, conditional bool) {
		c := t.chains[name]
		if c == nil || always[name] || conditional && some[name] {
			return
		}
		some[name] = true
		always[name] = !conditional
		for i := range c.rules {
			if _, _, ok := flatParseRule(&c.rules[i]); ok {
				continue // the chains of its choices are looked at one by one
			}
			e := evaluate(t, &c.rules[i])
			for _, target := range e.targets {
				visit(target, conditional || e.conditional || e.proto != 0)
			}
		}
	}
	for name, c := range t.chains {
		if !t.dormant && c.hook != nil && c.hook.typ == "nat" && (c.hook.num == hookPreroute || c.hook.num == hookLocalOut) {
			visit(name, false)
		}
	}
	r.readSeats(t, some)
	r.readFirewall(t)
	for name, c := range t.chains {
		if _, ok := r.seats[name]; ok {
			continue
		}
		for i := range c.rules {
			set, rule, ok := flatParseRule(&c.rules[i])
			switch _, twice := r.rules[set]; {
			case !ok && translates(&c.rules[i]):
				e := evaluate(t, &c.rules[i])
				for _, ep := range e.endpoints {
					r.strange("chain "+name, fmt.Sprintf("chain %s: %s", name, ep))
				}
				for _, what := range e.odd {
					r.strange("chain "+name, fmt.Sprintf("chain %s: %s", name, what))
				}
			case !ok:
			case !some[name]:
				r.strange("chain "+name, fmt.Sprintf("chain %s: set %s is looked into, but no nat hook leads there", name, set))
			case twice:
				r.strange("chain "+name, fmt.Sprintf("chain %s: a second rule looks into set %s", name, set))
			default:
				rule.shortcut = !always[name]
				r.rules[set] = rule
				if rule.endpoints != "" {
					r.sets[rule.endpoints] = append(r.sets[rule.endpoints], set)
				}
			}
		}
	}
}

// flatParseRule knows a rule by its shape: in a set of frontends, a random
// number, a map, dnat to what the map gives; or, with session affinity, a map to
// chains.
func flatParseRule(rule *rule) (set string, out flatRule, ok bool) {
	var x []*expr
	for i := range rule.exprs {
		switch e := &rule.exprs[i]; e.name {
		case "payload", "counter":
		case "meta":
			if e.arg != metaL4Proto || e.sreg != 0 {
				return "", flatRule{}, false
			}
		default:
			x = append(x, e)
		}
	}
	if len(x) == 3 && x[0].name == "lookup" && !x[0].mapped && x[0].arg == 0 && x[1].name == "numgen" &&
		x[2].name == "lookup" && x[2].mapped && x[2].dreg == regVerdict && x[2].sreg == x[0].sreg {
		return x[0].set, flatRule{choices: x[2].set, offset: x[1].offset, count: x[1].arg}, true
	}
	if len(x) != 4 || x[0].name != "lookup" || x[0].mapped || x[0].arg != 0 || x[1].name != "numgen" ||
		x[2].name != "lookup" || !x[2].mapped || x[2].dreg == regVerdict || x[2].sreg != x[0].sreg ||
		x[3].name != "nat" || x[3].arg != natDNAT || regOffset(x[3].nat.addrMin) != regOffset(x[2].dreg) || x[3].nat.protoMin == 0 {
		return "", flatRule{}, false
	}
	return x[0].set, flatRule{endpoints: x[2].set, offset: x[1].offset, count: x[1].arg}, true
}

// touch takes in an element that came, went or changed.
func (r *flat) touch(t *table, ref kpElem, dirty map[kpPort]struct{}, keys map[kpElem]struct{}) {
	var e element
	present := false
	if s := t.sets[ref.set]; s != nil {
		e, present = s.elems[ref.key]
	}
	switch {
	case strings.HasSuffix(ref.set, flatMaps) && ref.set != flatNoEndpoints, strings.HasSuffix(ref.set, flatChoices):
		r.touchEndpoint(ref, present, dirty, keys)
		return
	case ref.set != "" && (ref.set == r.firewall.sources || ref.set == r.firewall.frontends):
		r.touchSource(ref, present, dirty)
		return
	}
	rule, looked := r.rules[ref.set]
	if !looked && ref.set != flatNoEndpoints && !strings.Contains(ref.set, flatSets) {
		return
	}
	object := "set " + ref.set + " " + ref.key
	delete(r.odd, object)
	if f, ok := r.owner[ref]; ok {
		dirty[f.port] = struct{}{}
		delete(r.owner, ref)
		remove(r.fronts, f.port, ref)
	}
	if looked {
		// Without a map's name: what clients stay with.
		keys[kpElem{rule.endpoints, ref.key}] = struct{}{}
		// Whether a frontend is turned away depends on this one.
		if f, ok := r.owner[kpElem{flatNoEndpoints, ref.key}]; ok {
			dirty[f.port] = struct{}{}
		}
	}
	if !present {
		return
	}
	f, why := r.attribute(ref, &e)
	if why == "" && !looked && ref.set != flatNoEndpoints {
		why = flatAt(ref.key) + ": no rule on a nat hook looks into the set"
	}
	if why != "" {
		r.strange(object, "set "+ref.set+": "+why)
		return
	}
	r.owner[ref] = f
	add(r.fronts, f.port, ref)
	dirty[f.port] = struct{}{}
}

func (r *flat) touchEndpoint(ref kpElem, present bool, dirty map[kpPort]struct{}, keys map[kpElem]struct{}) {
	object := "map " + ref.set + " " + ref.key
	delete(r.odd, object)
	if len(ref.key) < 4 {
		r.strange(object, fmt.Sprintf("map %s: a key of %d bytes", ref.set, len(ref.key)))
		return
	}
	k := kpElem{ref.set, ref.key[:len(ref.key)-4]}
	n := binary.NativeEndian.Uint32([]byte(ref.key[len(k.key):]))
	if present {
		add(r.numbers, k, n)
	} else {
		remove(r.numbers, k, n)
	}
	sets := r.sets[ref.set]
	if r.kept[ref.set] || strings.HasSuffix(ref.set, flatChoices) {
		sets = nil
		for set, rule := range r.rules {
			if rule.choices != "" {
				sets = append(sets, set)
			}
		}
		keys[kpElem{"", k.key}] = struct{}{}
	} else {
		keys[k] = struct{}{}
	}
	for _, set := range sets {
		if f, ok := r.owner[kpElem{set, k.key}]; ok {
			dirty[f.port] = struct{}{}
		}
	}
}

// checkNumbers says where what a map has for a frontend is not what is drawn.
func (r *flat) checkNumbers(t *table, k kpElem) {
	object := "numbers " + k.set + " " + k.key
	delete(r.odd, object)
	drawn := func(n uint32) bool {
		return slices.ContainsFunc(r.sets[k.set], func(set string) bool {
			s := t.sets[set]
			if s == nil {
				return false
			}
			_, in := s.elems[k.key]
			return in && n-r.rules[set].offset < r.rules[set].count
		})
	}
	for n := range r.numbers[k] {
		if !drawn(n) {
			e := t.sets[k.set].elems[k.key+string(binary.NativeEndian.AppendUint32(nil, n))]
			r.strange(object, fmt.Sprintf("map %s: %s number %d: %s is never chosen", k.set, flatAt(k.key), n, flatEndpoint(&e)))
		}
	}
	for _, set := range r.sets[k.set] {
		s := t.sets[set]
		if s == nil {
			continue
		}
		if _, in := s.elems[k.key]; !in {
			continue
		}
		for i := range r.rules[set].count {
			if _, ok := r.numbers[k][r.rules[set].offset+i]; !ok {
				r.strange(object, fmt.Sprintf("map %s: %s number %d of %d is missing", k.set, flatAt(k.key), i, r.rules[set].count))
			}
		}
	}
}

func (r *flat) strange(object, text string) { r.odd[object] = append(r.odd[object], text) }

// attribute reads the comment of a frontend's element.
func (r *flat) attribute(ref kpElem, e *element) (flatFront, string) {
	k, ok := kpParseKey(r.key.family, false, e.key)
	if !ok || e.flags != 0 || len(e.keyEnd) > 0 {
		return flatFront{}, "an element that is not one address, protocol and port"
	}
	if ref.set == flatNoEndpoints && (e.verdict == nil || e.verdict.chain == "" && e.verdict.code != verdictDrop) {
		return flatFront{}, flatAt(ref.key) + ": connections are not turned away"
	}
	f := flatFront{kind: collect.FrontendClusterIP, policy: collect.PolicyCluster}
	words := strings.Split(e.comment, " ")
	name, words := words[0], words[1:]
	if ns, rest, found := strings.Cut(name, "/"); found {
		svc, port, _ := strings.Cut(rest, ":")
		f.port = kpPort{namespace: ns, service: svc, port: port, proto: k.proto}
	}
	if len(words) > 0 {
		switch kind := collect.FrontendKind(words[0]); kind {
		case collect.FrontendNodePort, collect.FrontendExternalIP, collect.FrontendLoadBalancer:
			f.kind, words = kind, words[1:]
		}
	}
	if len(words) > 0 && words[0] == string(collect.PolicyLocal) {
		f.policy, words = collect.PolicyLocal, words[1:]
	}
	if f.port.namespace == "" || f.port.service == "" || len(words) > 0 {
		return flatFront{}, fmt.Sprintf("%s: comment %q does not name a Service port", flatAt(ref.key), e.comment)
	}
	return f, ""
}
