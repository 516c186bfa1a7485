package noderules

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kconverge/kconverge/collect"
)

// A node's rules are told of one layout at a time. A kube-proxy that starts in
// another mode first removes what the mode before has left (platformCleanup in
// k8s.io/kubernetes cmd/kube-proxy/app/server_linux.go), so normally one layout
// goes before another comes. Where two are there nevertheless, both translate on
// the same hooks, and which of the two a connection takes depends on which was
// hooked in last; the first in the registry's order is told, and of the other it
// is said that it is there. The choice depends on what is there only, not on how
// it came, so that a fresh dump comes to the same.

// kept is one layout of a tracker with its tables.
type kept struct {
	layout
	tables []*tracked
}

func (k *kept) size() (n int) {
	for _, tr := range k.tables {
		n += tr.resolver.size()
	}
	return n
}

func (k *kept) present() bool {
	return slices.ContainsFunc(k.tables, func(tr *tracked) bool { return tr.resolver.present(tr.table) })
}

func (k *kept) ports() (out []collect.RulePort) {
	for _, tr := range k.tables {
		out = append(out, tr.resolver.ports()...)
	}
	sortPorts(out)
	return out
}

// bring resolves what changed in the layout's tables.
func (k *kept) bring() (changed []collect.RulePort) {
	for _, tr := range k.tables {
		if what := tr.table.take(); !what.empty() {
			changed = append(changed, tr.resolver.resolve(tr.table, what)...)
		}
	}
	for _, tr := range k.tables {
		if s, ok := tr.resolver.(settler); ok {
			changed = append(changed, s.settle()...)
		}
	}
	return changed
}

// choose picks the layout to tell of: the first with Service ports, else the
// first that is there at all, else none.
func (t *tracker) choose() *kept {
	for _, k := range t.layouts {
		if k.size() > 0 {
			return k
		}
	}
	for _, k := range t.layouts {
		if k.present() {
			return k
		}
	}
	return nil
}

// conclude resolves everything that changed and says what came of it.
func (t *tracker) conclude(g *generation) {
	var changed []collect.RulePort
	was := t.shown
	for _, k := range t.layouts {
		if ports := k.bring(); k == was {
			changed = ports
		}
	}
	t.shown = t.choose()
	if t.shown == was {
		g.ports = changed
	} else {
		g.ports = t.exchange(was, changed)
	}
	sortPorts(g.ports)
	none := t.none()
	g.layoutChanged = t.shown != was || none != t.noLayout
	t.noLayout = none
	odd := t.unknown()
	g.oddChanged = !slices.Equal(odd, t.odd)
	t.odd = odd
}

// exchange is what a change from one layout to another comes to: everything of
// the new one, and the end of what only the old one had. changed is what changed
// in the old one at the same time.
func (t *tracker) exchange(was *kept, changed []collect.RulePort) []collect.RulePort {
	var now []collect.RulePort
	if t.shown != nil {
		now = t.shown.ports()
	}
	there := make(map[collect.RulePortKey]bool, len(now))
	for i := range now {
		there[now[i].RulePortKey] = true
	}
	var before []collect.RulePort
	if was != nil {
		before = was.ports()
	}
	for _, list := range [][]collect.RulePort{before, changed} {
		for i := range list {
			if key := list[i].RulePortKey; !there[key] {
				there[key] = true
				now = append(now, collect.RulePort{RulePortKey: key})
			}
		}
	}
	return now
}

// ports returns every port that there is, sorted.
func (t *tracker) ports() []collect.RulePort {
	if t.shown == nil {
		return nil
	}
	return t.shown.ports()
}

// layout names the layout that is told of, "" when there is none.
func (t *tracker) layout() string {
	if t.shown == nil {
		return ""
	}
	return t.shown.name
}

// ignored counts the rules of others in the tables of the layout.
func (t *tracker) ignored() (n int) {
	if t.shown == nil {
		return 0
	}
	for _, tr := range t.shown.tables {
		if i, ok := tr.resolver.(ignorer); ok {
			n += i.ignored()
		}
	}
	return n
}

// unknownMax bounds the list of unknown things in one event.
const unknownMax = 200

func (t *tracker) unknown() []string {
	var out []string
	for _, k := range t.layouts {
		if k != t.shown {
			if n := k.size(); n > 0 && t.shown != nil {
				out = append(out, fmt.Sprintf("rules of %s are there as well, %d Service ports: left from another mode of kube-proxy? They may take connections too", k.name, n))
			}
			continue
		}
		for _, tr := range k.tables {
			for _, text := range tr.resolver.unknown() {
				out = append(out, collect.Plain(text))
			}
		}
	}
	if t.unread != "" {
		out = append(out, t.unread)
	}
	slices.Sort(out)
	out = slices.Compact(out)
	if more := len(out) - unknownMax; more > 0 {
		out = append(out[:unknownMax], fmt.Sprintf("and %d more", more))
	}
	return out
}

// otherProxies are programs that route Services themselves, by how the names of
// their iptables chains begin.
var otherProxies = []struct{ prefix, name string }{
	{"CILIUM_", "Cilium"},
	{"OVN-KUBE-", "OVN-Kubernetes"},
	{"KUBE-ROUTER-", "kube-router"},
	{"ANTREA-", "Antrea"},
	{"cali-", "Calico"},
}

// ipvsChains tells kube-proxy's IPVS mode by its own chains (k8s.io/kubernetes
// pkg/proxy/ipvs/proxier.go).
func ipvsChains(t *table) bool {
	return t.chains["KUBE-LOAD-BALANCER"] != nil || t.chains["KUBE-NODE-PORT"] != nil || t.chains["KUBE-IPVS-FILTER"] != nil
}

// none says, when no layout is there, what is instead, as far as the tables that
// are read can tell.
func (t *tracker) none() string {
	if t.shown != nil {
		return ""
	}
	ipvs := false
	var others []string
	for _, k := range t.layouts {
		if !k.xt {
			continue
		}
		for _, tr := range k.tables {
			ipvs = ipvs || ipvsChains(tr.table)
			for name := range tr.table.chains {
				for _, o := range otherProxies {
					if strings.HasPrefix(name, o.prefix) && !slices.Contains(others, o.name) {
						others = append(others, o.name)
					}
				}
			}
		}
	}
	if ipvs {
		return "kube-proxy runs in IPVS mode, whose virtual servers are not read: run it in nftables mode to see this node's rules"
	}
	text := collect.NoRules
	if len(others) > 0 {
		slices.Sort(others)
		text += "; there are chains of " + strings.Join(others, " and ") + ", which can route Services itself, and is not read"
	}
	return text
}
