package anonymise

import (
	"net/netip"
	"reflect"
	"regexp"
	"strings"

	"github.com/kconverge/kconverge/collect"
)

var (
	given   = regexp.MustCompile(`\b(` + strings.Join(kindNames[:], "|") + `)-x+[0-9]{5,}[a-z]{5}\b`)
	address = regexp.MustCompile(`[0-9a-f]*[.:][0-9a-f.:]*[0-9a-f:]`)
)

// Restore puts names and addresses back in a text that was made of rewritten events,
// such as a report's.
func (a *Anonymiser) Restore(s string) string {
	if a.back == nil {
		a.back = map[string]string{}
		for was, now := range a.names.by {
			a.back[now] = was
		}
		for x := range a.seen {
			a.back[a.addr(x).String()] = x.String()
		}
	}
	s = address.ReplaceAllStringFunc(s, func(x string) string {
		if was, ok := a.back[x]; ok {
			return was
		}
		if p, err := netip.ParseAddrPort(x); err == nil {
			if was, ok := a.back[p.Addr().String()]; ok {
				return netip.AddrPortFrom(netip.MustParseAddr(was), p.Port()).String()
			}
		}
		return x
	})
	return given.ReplaceAllStringFunc(s, func(x string) string {
		if was, ok := a.back[x]; ok {
			return was
		}
		return x
	})
}

// Names are what was met and stands for somebody: not the words of texts.
func (a *Anonymiser) Names() (out []string) {
	for s, k := range a.names.kinds {
		if k != word {
			out = append(out, s)
		}
	}
	return out
}

// Addresses are those that were met and are replaced.
func (a *Anonymiser) Addresses() (out []netip.Addr) {
	for x := range a.seen {
		if !kept(x) {
			out = append(out, x)
		}
	}
	return out
}

// Stands tells that an address is what has become of one that was met, of an address
// or of a prefix.
func (a *Anonymiser) Stands(x netip.Addr) bool {
	for _, now := range a.addrs.cache {
		if now == x {
			return true
		}
	}
	for p := range a.ranges {
		if a.prefix(p).Addr() == x {
			return true
		}
	}
	return false
}

// Known tells that a word stays where it is one of Kubernetes.
func Known(s string) bool { return knownWords[s] || knownKeys[s] || knownSources[s] || probe[s] }

// probe are the words that a message about a probe keeps.
var probe = set("Readiness Liveness Startup readiness liveness startup probe failed errored Container")

// strings of a payload type, by the way that leads there.
func leaves(t reflect.Type, path string, visit func(reflect.Type, string)) {
	switch t {
	case timeType, addrType, addrPortType, prefixType:
		return
	}
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice:
		leaves(t.Elem(), path, visit)
	case reflect.Map:
		leaves(t.Elem(), path, visit)
	case reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			to := path + "." + f.Name
			if f.Anonymous {
				to = path
			}
			leaves(f.Type, to, visit)
		}
	default:
		visit(t, path)
	}
}

// JSONNames are the names of all fields of payloads on a line.
func JSONNames() (out []string) {
	var walk func(t reflect.Type)
	walk = func(t reflect.Type) {
		switch t.Kind() {
		case reflect.Pointer, reflect.Slice:
			walk(t.Elem())
		case reflect.Struct:
			for i := range t.NumField() {
				name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
				out = append(out, name)
				walk(t.Field(i).Type)
			}
		}
	}
	for _, p := range collect.Payloads() {
		walk(reflect.TypeOf(p))
	}
	return out
}
