package iptwitness

import (
	"cmp"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/kconverge/kconverge/collect"
)

// line is one "-A CHAIN …": options and their values, "!" kept before the name.
type line struct {
	chain string
	opt   map[string]string
}

// saved is a saved rule set: table, then chain.
type saved map[string]map[string][]line

// Ports gives what a node's rules do, in the order and with the words of
// collect.Rules, from the output of iptables-save and ip6tables-save (empty:
// none). It fails the test when a line is not what it knows.
func Ports(t testing.TB, v4, v6 []byte) []collect.RulePort {
	t.Helper()
	m := map[collect.RulePortKey]*collect.RulePort{}
	parse(t, string(v4)).ports(t, collect.IPv4, m)
	parse(t, string(v6)).ports(t, collect.IPv6, m)
	var out []collect.RulePort
	for _, p := range m {
		slices.SortFunc(p.Frontends, func(a, b collect.Frontend) int {
			return cmp.Or(cmp.Compare(a.Kind, b.Kind), a.Addr.Compare(b.Addr))
		})
		p.Frontends = slices.Compact(p.Frontends)
		slices.SortFunc(p.Endpoints, netip.AddrPort.Compare)
		p.Endpoints = slices.Compact(p.Endpoints)
		out = append(out, *p)
	}
	slices.SortFunc(out, func(a, b collect.RulePort) int { return a.RulePortKey.Compare(b.RulePortKey) })
	return out
}

func parse(t testing.TB, text string) saved {
	t.Helper()
	out := saved{}
	table := ""
	for l := range strings.Lines(text) {
		l = strings.TrimSpace(l)
		if strings.HasPrefix(l, "[") { // counters, with -c
			_, l, _ = strings.Cut(l, "] ")
		}
		switch {
		case l == "" || l[0] == '#' || l[0] == ':' || l == "COMMIT":
		case l[0] == '*':
			table = l[1:]
			out[table] = map[string][]line{}
		case strings.HasPrefix(l, "-A "):
			f := words(l)
			r := line{chain: f[1], opt: map[string]string{}}
			not := ""
			for i := 2; i < len(f); i++ {
				switch {
				case f[i] == "!":
					not = "!"
				case strings.HasPrefix(f[i], "-"):
					name := not + f[i]
					not = ""
					value := ""
					if i+1 < len(f) && !strings.HasPrefix(f[i+1], "-") && f[i+1] != "!" {
						i++
						value = f[i]
					}
					r.opt[name] = value
				}
			}
			out[table][r.chain] = append(out[table][r.chain], r)
		default:
			t.Fatalf("iptables-save printed %q", l)
		}
	}
	return out
}

// words splits a line; quotes keep words together.
func words(l string) (out []string) {
	var b strings.Builder
	quoted, any := false, false
	for _, c := range l {
		switch {
		case c == '"':
			quoted, any = !quoted, true
		case c == ' ' && !quoted:
			if any {
				out = append(out, b.String())
			}
			b.Reset()
			any = false
		default:
			b.WriteRune(c)
			any = true
		}
	}
	if any {
		out = append(out, b.String())
	}
	return out
}

func (s saved) ports(t testing.TB, family collect.Family, m map[collect.RulePortKey]*collect.RulePort) {
	t.Helper()
	port := func(l line, policy collect.Policy) *collect.RulePort {
		name, _, _ := strings.Cut(l.opt["--comment"], " ")
		ns, rest, ok := strings.Cut(name, "/")
		if !ok {
			t.Fatalf("no Service port in comment %q", l.opt["--comment"])
		}
		svc, portName, _ := strings.Cut(rest, ":")
		k := collect.RulePortKey{Namespace: ns, Service: svc, Port: portName, Policy: policy, Family: family,
			Protocol: collect.Protocol(strings.ToUpper(l.opt["-p"]))}
		if m[k] == nil {
			m[k] = &collect.RulePort{RulePortKey: k}
		}
		return m[k]
	}
	at := func(l line) netip.AddrPort {
		n, err := strconv.ParseUint(l.opt["--dport"], 10, 16)
		if err != nil {
			t.Fatalf("port of %v: %v", l, err)
		}
		if d, ok := l.opt["-d"]; ok && !strings.HasPrefix(d, "127.") {
			return netip.AddrPortFrom(netip.MustParsePrefix(d).Addr(), uint16(n))
		}
		if family == collect.IPv6 {
			return netip.AddrPortFrom(netip.IPv6Unspecified(), uint16(n))
		}
		return netip.AddrPortFrom(netip.IPv4Unspecified(), uint16(n))
	}
	kinds := map[netip.AddrPort]collect.FrontendKind{}
	nat := s["nat"]
	for _, chain := range []string{"KUBE-SERVICES", "KUBE-NODEPORTS"} {
		for _, l := range nat[chain] {
			to := l.opt["-j"]
			if to == "KUBE-NODEPORTS" {
				continue
			}
			note := l.opt["--comment"]
			kind := collect.FrontendNodePort
			switch {
			case chain == "KUBE-NODEPORTS":
			case strings.HasSuffix(note, "cluster IP"):
				kind = collect.FrontendClusterIP
			case strings.HasSuffix(note, "external IP"):
				kind = collect.FrontendExternalIP
			case strings.HasSuffix(note, "loadbalancer IP"):
				kind = collect.FrontendLoadBalancer
			default:
				t.Fatalf("comment %q", note)
			}
			var from []netip.Prefix
			if strings.HasPrefix(to, "KUBE-FW-") {
				from = sources(t, nat[to])
				to = "KUBE-EXT-" + strings.TrimPrefix(to, "KUBE-FW-")
			}
			policy := collect.PolicyCluster
			into := map[collect.Policy]string{}
			lead := func(to string) collect.Policy {
				if strings.HasPrefix(to, "KUBE-SVL-") {
					into[collect.PolicyLocal] = to
					return collect.PolicyLocal
				}
				into[collect.PolicyCluster] = to
				return collect.PolicyCluster
			}
			if strings.HasPrefix(to, "KUBE-EXT-") {
				policy = collect.PolicyLocal // unless some rule takes everybody to the other
				for _, x := range nat[to] {
					if x.opt["-j"] == "KUBE-MARK-MASQ" {
						continue
					}
					if p := lead(x.opt["-j"]); len(x.opt) == 1 {
						policy = p
					}
				}
			} else {
				policy = lead(to)
			}
			p := port(l, policy)
			if from != nil {
				p.Sources = from
			}
			kinds[at(l)] = kind
			p.Frontends = append(p.Frontends, collect.Frontend{Kind: kind, Addr: at(l)})
			for policy, chain := range into {
				p := port(l, policy)
				p.Endpoints = append(p.Endpoints, endpoints(nat, chain)...)
				p.Affinity = max(p.Affinity, stay(t, nat[chain]))
			}
		}
	}
	for _, chain := range []string{"KUBE-SERVICES", "KUBE-EXTERNAL-SERVICES"} {
		for _, l := range s["filter"][chain] {
			kind := collect.FrontendClusterIP
			switch {
			case kinds[at(l)] != "":
				kind = kinds[at(l)]
			case l.opt["-d"] == "":
				kind = collect.FrontendNodePort
			case chain == "KUBE-EXTERNAL-SERVICES":
				kind = collect.FrontendExternalIP
			}
			policy := collect.PolicyCluster
			if l.opt["-j"] == "DROP" {
				policy = collect.PolicyLocal
			}
			p := port(l, policy)
			p.Frontends = append(p.Frontends, collect.Frontend{Kind: kind, Addr: at(l)})
		}
	}
	for k, p := range m {
		if p.Empty() {
			delete(m, k)
		}
	}
}

// stay is for how long a client is remembered by the rules of a chain.
func stay(t testing.TB, chain []line) (d time.Duration) {
	for _, l := range chain {
		if _, ok := l.opt["--rcheck"]; ok {
			s, err := time.ParseDuration(l.opt["--seconds"] + "s")
			if err != nil {
				t.Fatalf("seconds of %v: %v", l, err)
			}
			d = max(d, s)
		}
	}
	return d
}

// sources are those that a firewall chain lets on.
func sources(t testing.TB, chain []line) []netip.Prefix {
	t.Helper()
	var out []collect.AddrRange
	for _, l := range chain {
		if !strings.HasPrefix(l.opt["-j"], "KUBE-EXT-") {
			continue
		}
		p, err := netip.ParsePrefix(l.opt["-s"])
		if err != nil {
			t.Fatalf("source of %v: %v", l, err)
		}
		out = append(out, collect.RangeOf(p))
	}
	return collect.PrefixesOf(collect.MergeRanges(out))
}

func endpoints(nat map[string][]line, chain string) (out []netip.AddrPort) {
	for _, l := range nat[chain] {
		if to, ok := l.opt["--to-destination"]; ok {
			out = append(out, netip.MustParseAddrPort(to))
		}
		if strings.HasPrefix(l.opt["-j"], "KUBE-SEP-") {
			out = append(out, endpoints(nat, l.opt["-j"])...)
		}
	}
	return out
}
