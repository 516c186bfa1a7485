package nftwitness

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/kconverge/kconverge/collect"
)

// witness reads the output of `nft -j list ruleset`: the same question answered
// by another program over another path. It is written from the JSON's shape and
// shares no code with the decoder but the names of things.
type witness struct {
	rules map[string][]any          // "family chain" -> expressions of each rule
	maps  map[string]map[string]any // "family map" -> key -> value
	notes map[string]map[string]string
	sets  map[string][]string
	// timeouts are those of sets.
	timeouts map[string]time.Duration
}

// Ports gives what a node's rules do, in the order and with the words of
// collect.Rules, from the output of `nft -j list ruleset`. It fails the test when
// that is not what it knows of kube-proxy's nftables mode.
func Ports(t testing.TB, out []byte) []collect.RulePort {
	t.Helper()
	var doc struct {
		Nftables []map[string]json.RawMessage `json:"nftables"`
	}
	if err := json.Unmarshal(out, &doc); err != nil {
		t.Fatalf("nft's JSON: %v", err)
	}
	w := &witness{rules: map[string][]any{}, maps: map[string]map[string]any{}, notes: map[string]map[string]string{}, sets: map[string][]string{}, timeouts: map[string]time.Duration{}}
	for _, item := range doc.Nftables {
		for kind, raw := range item {
			var o struct {
				Family, Table, Name, Chain string
				Expr                       []any
				Elem                       []any
				Timeout                    int // seconds
			}
			if kind == "metainfo" {
				continue
			}
			if err := json.Unmarshal(raw, &o); err != nil {
				t.Fatalf("nft's JSON, %s: %v", kind, err)
			}
			if o.Table != "kube-proxy" {
				continue
			}
			switch kind {
			case "rule":
				w.rules[o.Family+" "+o.Chain] = append(w.rules[o.Family+" "+o.Chain], o.Expr)
			case "set":
				w.timeouts[o.Family+" "+o.Name] = time.Duration(o.Timeout) * time.Second
				for _, e := range o.Elem {
					w.sets[o.Family+" "+o.Name] = append(w.sets[o.Family+" "+o.Name], fmt.Sprint(e))
				}
			case "map":
				m, notes := map[string]any{}, map[string]string{}
				for _, e := range o.Elem {
					pair := e.([]any)
					key := pair[0].(map[string]any)
					note := ""
					if el, ok := key["elem"].(map[string]any); ok {
						note, _ = el["comment"].(string)
						key = el["val"].(map[string]any)
					}
					var parts []string
					for _, p := range key["concat"].([]any) {
						parts = append(parts, fmt.Sprint(p))
					}
					k := strings.Join(parts, " ")
					m[k], notes[k] = pair[1], note
				}
				w.maps[o.Family+" "+o.Name], w.notes[o.Family+" "+o.Name] = m, notes
			}
		}
	}
	return w.ports(t)
}

// each calls f for every JSON object below v that has the given member.
func each(v any, member string, f func(any)) {
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			if k == member {
				f(x)
			}
			each(x, member, f)
		}
	case []any:
		for _, x := range v {
			each(x, member, f)
		}
	}
}

func target(v any) (chain string) {
	each(v, "target", func(x any) { chain = x.(string) })
	return chain
}

func addrPort(addr, port any) netip.AddrPort {
	return netip.AddrPortFrom(netip.MustParseAddr(addr.(string)), uint16(port.(float64)))
}

func (w *witness) endpoints(family, chain string) (out []netip.AddrPort) {
	for _, rule := range w.rules[family+" "+chain] {
		each(rule, "dnat", func(x any) {
			d := x.(map[string]any)
			if s, ok := d["addr"].(string); ok {
				out = append(out, addrPort(s, d["port"]))
			}
		})
		each(rule, "concat", func(x any) {
			out = append(out, addrPort(x.([]any)[0], x.([]any)[1]))
		})
		each(rule, "target", func(x any) {
			out = append(out, w.endpoints(family, x.(string))...)
		})
	}
	return out
}

// sources are the addresses that a firewall chain lets through.
func (w *witness) sources(t testing.TB, family, chain string) []netip.Prefix {
	t.Helper()
	var out []collect.AddrRange
	var read func(v any)
	read = func(v any) {
		switch v := v.(type) {
		case string:
			a := netip.MustParseAddr(v)
			out = append(out, collect.AddrRange{From: a, To: a})
		case []any:
			for _, x := range v {
				read(x)
			}
		case map[string]any:
			switch p, isPrefix := v["prefix"].(map[string]any); {
			case isPrefix:
				out = append(out, collect.RangeOf(netip.PrefixFrom(netip.MustParseAddr(p["addr"].(string)), int(p["len"].(float64)))))
			case v["range"] != nil:
				r := v["range"].([]any)
				out = append(out, collect.AddrRange{From: netip.MustParseAddr(r[0].(string)), To: netip.MustParseAddr(r[1].(string))})
			default:
				read(v["set"])
			}
		}
	}
	for _, rule := range w.rules[family+" "+chain] {
		exprs := rule.([]any)
		m := exprs[0].(map[string]any)["match"].(map[string]any)
		if _, drops := exprs[len(exprs)-1].(map[string]any)["drop"]; m["op"] != "!=" || !drops {
			t.Fatalf("nft's JSON: chain %s does not drop by source: %v", chain, rule)
		}
		read(m["right"])
	}
	return collect.PrefixesOf(collect.MergeRanges(out))
}

// affinity is for how long the sets of clients that a chain looks into keep
// them.
func (w *witness) affinity(family, chain string) (out time.Duration) {
	for _, rule := range w.rules[family+" "+chain] {
		each(rule, "right", func(x any) {
			if set, ok := x.(string); ok && strings.HasPrefix(set, "@affinity-") {
				out = w.timeouts[family+" "+set[1:]]
			}
		})
	}
	return out
}

func (w *witness) ports(t testing.TB) []collect.RulePort {
	t.Helper()
	m := map[collect.RulePortKey]*collect.RulePort{}
	for _, family := range []string{"ip", "ip6"} {
		fam, anyAddr := collect.IPv4, "0.0.0.0"
		if family == "ip6" {
			fam, anyAddr = collect.IPv6, "::"
		}
		port := func(name string, proto string, policy collect.Policy) *collect.RulePort {
			f := strings.FieldsFunc(name, func(r rune) bool { return r == '/' || r == ':' })
			k := collect.RulePortKey{Namespace: f[0], Service: f[1], Protocol: collect.Protocol(strings.ToUpper(proto)), Family: fam, Policy: policy}
			if len(f) > 2 {
				k.Port = f[2]
			}
			if m[k] == nil {
				m[k] = &collect.RulePort{RulePortKey: k}
			}
			return m[k]
		}
		ofChain := func(chain string) (name, proto string) {
			f := strings.Split(strings.SplitN(chain, "-", 3)[2], "/")
			return f[0] + "/" + f[1] + "/" + f[3], f[2]
		}
		for _, set := range []string{"service-ips", "service-nodeports", "no-endpoint-services", "no-endpoint-nodeports"} {
			for key, verdict := range w.maps[family+" "+set] {
				f := strings.Fields(key)
				kind := collect.FrontendExternalIP
				if len(f) == 2 {
					f = append([]string{anyAddr}, f...)
					kind = collect.FrontendNodePort
				} else if _, ok := w.maps[family+" firewall-ips"][key]; ok {
					kind = collect.FrontendLoadBalancer
				} else if slices.Contains(w.sets[family+" cluster-ips"], f[0]) {
					kind = collect.FrontendClusterIP
				}
				number, err := strconv.ParseUint(f[2], 10, 16)
				if err != nil {
					t.Fatal(err)
				}
				front := collect.Frontend{Kind: kind, Addr: netip.AddrPortFrom(netip.MustParseAddr(f[0]), uint16(number))}
				policy, name, proto := collect.PolicyCluster, "", f[1]
				if strings.HasPrefix(set, "no-endpoint") {
					name = w.notes[family+" "+set][key]
					if target(verdict) == "" {
						policy = collect.PolicyLocal
					}
				} else {
					chain := target(verdict)
					name, _ = ofChain(chain)
					switch {
					case strings.HasPrefix(chain, "local-"):
						policy = collect.PolicyLocal
					case strings.HasPrefix(chain, "external-"):
						rules := w.rules[family+" "+chain]
						last := rules[len(rules)-1].([]any)
						if len(last) > 1 || strings.HasPrefix(target(last), "local-") {
							policy = collect.PolicyLocal
						}
					}
				}
				p := port(name, proto, policy)
				p.Frontends = append(p.Frontends, front)
				if kind == collect.FrontendLoadBalancer {
					p.Sources = w.sources(t, family, target(w.maps[family+" firewall-ips"][key]))
				}
			}
		}
		for at := range w.rules {
			chain, ok := strings.CutPrefix(at, family+" ")
			if !ok {
				continue
			}
			policy := collect.PolicyCluster
			switch {
			case strings.HasPrefix(chain, "service-") && strings.Contains(chain, "/"):
			case strings.HasPrefix(chain, "local-") && strings.Contains(chain, "/"):
				policy = collect.PolicyLocal
			default:
				continue
			}
			name, proto := ofChain(chain)
			p := port(name, proto, policy)
			p.Endpoints = append(p.Endpoints, w.endpoints(family, chain)...)
			if len(p.Endpoints) > 0 {
				p.Affinity = w.affinity(family, chain)
			}
		}
	}
	var out []collect.RulePort
	for _, p := range m {
		slices.SortFunc(p.Frontends, func(a, b collect.Frontend) int {
			if c := strings.Compare(string(a.Kind), string(b.Kind)); c != 0 {
				return c
			}
			return a.Addr.Compare(b.Addr)
		})
		p.Frontends = slices.Compact(p.Frontends)
		slices.SortFunc(p.Endpoints, netip.AddrPort.Compare)
		p.Endpoints = slices.Compact(p.Endpoints)
		out = append(out, *p)
	}
	slices.SortFunc(out, func(a, b collect.RulePort) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Service, b.Service),
			cmp.Compare(a.Port, b.Port), cmp.Compare(a.Protocol, b.Protocol),
			cmp.Compare(a.Family, b.Family), cmp.Compare(a.Policy, b.Policy))
	})
	return out
}
