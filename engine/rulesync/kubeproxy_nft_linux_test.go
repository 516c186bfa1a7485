package rulesync_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/kconverge/kconverge/collect"
)

// nftRuleset is the output of "nft -j list ruleset", of kube-proxy's table of one
// family. It is read here by other means than collect/noderules does:
// text made by nft, followed from the frontends to the addresses.
type nftRuleset struct {
	family  string // "ip", "ip6"
	objects []map[string]map[string]any
	rules   map[string][][]any // expressions of each rule, by chain
	maps    map[string][]any   // elements, by map
}

func parseNft(t *testing.T, out []byte, family string) nftRuleset {
	t.Helper()
	var doc struct {
		Objects []map[string]map[string]any `json:"nftables"`
	}
	if err := json.Unmarshal(out, &doc); err != nil {
		t.Fatalf("nft printed something else than its JSON: %v", err)
	}
	r := nftRuleset{family: family, rules: map[string][][]any{}, maps: map[string][]any{}}
	for _, o := range doc.Objects {
		for kind, f := range o {
			if f["family"] != family || f["table"] != "kube-proxy" {
				continue
			}
			r.objects = append(r.objects, o)
			switch kind {
			case "rule":
				chain := f["chain"].(string)
				r.rules[chain] = append(r.rules[chain], f["expr"].([]any))
			case "map":
				elem, _ := f["elem"].([]any) // absent when empty
				r.maps[f["name"].(string)] = elem
			}
		}
	}
	return r
}

// frontends maps "10.96.0.1:80/tcp" or "nodeport IPv4:30080/tcp" to the endpoints
// that a connection from another machine may end at.
func (r nftRuleset) frontends(t *testing.T) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	for _, m := range []struct {
		name    string
		refuses bool
	}{{"service-ips", false}, {"service-nodeports", false}, {"no-endpoint-services", true}, {"no-endpoint-nodeports", true}} {
		for _, e := range r.maps[m.name] {
			key, verdict := pair(t, e)
			front := r.frontName(t, key)
			if _, known := out[front]; known && !m.refuses {
				t.Errorf("nft shows %s twice", front)
			}
			if m.refuses {
				// A refused frontend may have a chain as well, for the
				// connections of the node itself.
				out[front] = nil
				continue
			}
			chain, ok := target(verdict, "goto")
			if !ok {
				t.Fatalf("the verdict of %s in %s is not a goto: %v", front, m.name, verdict)
			}
			eps := r.follow(t, chain)
			slices.Sort(eps)
			out[front] = eps
		}
	}
	return out
}

// follow lists the addresses that a chain leads to. Rules with a condition on
// the source are ways for some clients only: session affinity repeats what the
// rule without a condition does, and the others are the node's own connections.
func (r nftRuleset) follow(t *testing.T, chain string) []string {
	t.Helper()
	for _, rule := range r.rules[chain] {
		conditional := false
		for _, e := range rule {
			switch kind, v := only(t, e); kind {
			case "match":
				left := fmt.Sprint(v.(map[string]any)["left"])
				conditional = conditional || !strings.Contains(left, "l4proto")
			case "goto":
				if !conditional {
					return r.follow(t, v.(map[string]any)["target"].(string))
				}
			case "dnat":
				return dnatTargets(t, v.(map[string]any))
			case "vmap":
				var out []string
				for _, e := range v.(map[string]any)["data"].(map[string]any)["set"].([]any) {
					_, verdict := pair(t, e)
					next, ok := target(verdict, "goto")
					if !ok {
						t.Fatalf("%s spreads to something else than chains: %v", chain, verdict)
					}
					out = append(out, r.follow(t, next)...)
				}
				return out
			case "mangle", "set": // the masquerade mark, the affinity set
			default:
				t.Fatalf("%s has an unexpected %s: %v", chain, kind, v)
			}
		}
	}
	return nil
}

func dnatTargets(t *testing.T, d map[string]any) []string {
	t.Helper()
	switch addr := d["addr"].(type) {
	case string:
		return []string{hostPort(addr, d["port"])}
	case map[string]any:
		var out []string
		for _, e := range addr["map"].(map[string]any)["data"].(map[string]any)["set"].([]any) {
			_, to := pair(t, e)
			c := to.(map[string]any)["concat"].([]any)
			out = append(out, hostPort(c[0], c[1]))
		}
		return out
	}
	t.Fatalf("unexpected dnat %v", d)
	return nil
}

func hostPort(addr, port any) string { return net.JoinHostPort(fmt.Sprint(addr), fmt.Sprint(port)) }

// pair splits a map element.
func pair(t *testing.T, e any) (key, value any) {
	t.Helper()
	p, ok := e.([]any)
	if !ok || len(p) != 2 {
		t.Fatalf("not a map element: %v", e)
	}
	return p[0], p[1]
}

// only splits an object of one field. "drop" and the like are null objects.
func only(t *testing.T, e any) (string, any) {
	t.Helper()
	m, ok := e.(map[string]any)
	if !ok || len(m) != 1 {
		t.Fatalf("not an expression: %v", e)
	}
	for k, v := range m {
		return k, v
	}
	panic("unreachable")
}

func target(verdict any, kind string) (string, bool) {
	m, _ := verdict.(map[string]any)
	g, _ := m[kind].(map[string]any)
	s, ok := g["target"].(string)
	return s, ok
}

// frontName names a key: address . protocol . port, or protocol . port. An
// element with a comment is wrapped once more.
func (r nftRuleset) frontName(t *testing.T, key any) string {
	t.Helper()
	m, _ := key.(map[string]any)
	if e, ok := m["elem"].(map[string]any); ok {
		m, _ = e["val"].(map[string]any)
	}
	switch c, _ := m["concat"].([]any); len(c) {
	case 3:
		return hostPort(c[0], c[2]) + "/" + c[1].(string)
	case 2:
		return fmt.Sprintf("nodeport %s:%v/%v", map[string]string{"ip": "IPv4", "ip6": "IPv6"}[r.family], c[1], c[0])
	}
	t.Fatalf("not a frontend: %v", key)
	return ""
}

// frontendsOf is the same of decoded rules.
func frontendsOf(ports []collect.RulePort) map[string][]string {
	out := map[string][]string{}
	for _, p := range ports {
		var eps []string
		for _, e := range p.Endpoints {
			eps = append(eps, e.String())
		}
		slices.Sort(eps)
		for _, f := range p.Frontends {
			front := f.Addr.String()
			if f.Kind == collect.FrontendNodePort {
				front = fmt.Sprintf("nodeport %s:%d", p.Family, f.Addr.Port())
			}
			out[front+"/"+strings.ToLower(string(p.Protocol))] = eps
		}
	}
	return out
}

// layout is every object of the table as a line, comparable between two nodes:
// without handles, elements sorted, rules numbered within their chain. Which
// number an endpoint has in a random choice does not matter either. Emptied
// chains of Services are left out: when they are deleted depends on when the
// next sync comes.
func (r nftRuleset) layout() []string {
	var out []string
	position := map[string]int{}
	for _, o := range r.objects {
		for kind, f := range o {
			line := map[string]any{}
			for k, v := range f {
				line[k] = v
			}
			delete(line, "handle")
			prefix := kind
			switch kind {
			case "chain":
				name := f["name"].(string)
				if len(r.rules[name]) == 0 && strings.Contains(name, "/") {
					continue
				}
			case "rule":
				chain := f["chain"].(string)
				position[chain]++
				prefix = fmt.Sprintf("rule %s #%d", chain, position[chain])
				sortChoices(line["expr"])
			case "map", "set":
				elem, _ := line["elem"].([]any)
				delete(line, "elem")
				for _, e := range elem {
					out = append(out, fmt.Sprintf("element of %s: %s", f["name"], jsonText(e)))
				}
			}
			out = append(out, prefix+": "+jsonText(line))
		}
	}
	slices.Sort(out)
	return out
}

// sortChoices gives the numbers of a map that is looked up by numgen to its
// values in order.
func sortChoices(expr any) {
	switch e := expr.(type) {
	case []any:
		for _, x := range e {
			sortChoices(x)
		}
	case map[string]any:
		key, _ := e["key"].(map[string]any)
		data, _ := e["data"].(map[string]any)
		set, _ := data["set"].([]any)
		if _, random := key["numgen"]; !random {
			for _, x := range e {
				sortChoices(x)
			}
			return
		}
		slices.SortFunc(set, func(a, b any) int {
			return cmp.Compare(jsonText(a.([]any)[1]), jsonText(b.([]any)[1]))
		})
		for i := range set {
			set[i] = []any{i, set[i].([]any)[1]}
		}
	}
}

// jsonText is v as JSON, which came from JSON.
func jsonText(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}
