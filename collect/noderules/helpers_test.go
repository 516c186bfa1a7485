package noderules

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/kconverge/kconverge/collect"
)

const rulesDir = "../../testdata/rules/"

func fixture(t testing.TB, name string) string {
	t.Helper()
	b, err := os.ReadFile(rulesDir + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// nameHash is the hash in kube-proxy's chain names.
func nameHash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return base32.StdEncoding.EncodeToString(sum[:])[:8]
}

// chainName is the name that kube-proxy gives a chain.
func chainName(role, base string) string { return role + "-" + nameHash(base) + "-" + base }

// render writes ports as the .want files do.
func render(ports []collect.RulePort) string {
	var b strings.Builder
	for _, p := range ports {
		var fronts []string
		for _, f := range p.Frontends {
			fronts = append(fronts, fmt.Sprintf("%s %s", f.Kind, f.Addr))
		}
		fmt.Fprintf(&b, "%s/%s:%s %s %s %s [%s] ->", p.Namespace, p.Service, p.Port, p.Protocol, p.Family, p.Policy, strings.Join(fronts, ", "))
		for _, e := range p.Endpoints {
			fmt.Fprintf(&b, " %s", e)
		}
		if p.Sources != nil {
			fmt.Fprintf(&b, " from %v", p.Sources)
		}
		if p.Affinity > 0 {
			fmt.Fprintf(&b, " affinity %v", p.Affinity)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// state replays the Rules events: what a reader of the stream believes.
func state(events []collect.Event) []collect.RulePort {
	m := map[collect.RulePortKey]collect.RulePort{}
	for _, e := range events {
		r, ok := e.Payload.(*collect.Rules)
		if !ok {
			continue
		}
		if r.Baseline {
			clear(m)
		}
		for _, p := range r.Ports {
			if p.Empty() {
				delete(m, p.RulePortKey)
			} else {
				m[p.RulePortKey] = p
			}
		}
	}
	var out []collect.RulePort
	for _, p := range m {
		out = append(out, p)
	}
	sortPorts(out)
	return out
}

// wantPort finds the one port of a Service.
func wantPort(t testing.TB, ports []collect.RulePort, service string) string {
	t.Helper()
	i := slices.IndexFunc(ports, func(p collect.RulePort) bool { return p.Service == service })
	if i < 0 {
		return ""
	}
	return strings.TrimSpace(render(ports[i : i+1]))
}
