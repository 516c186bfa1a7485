package anonymise

import (
	"cmp"
	"net/netip"
	"reflect"
	"slices"
	"time"

	"github.com/kconverge/kconverge/collect"
)

var timeType = reflect.TypeFor[time.Time]()

// rewrite copies was, which path leads to, and replaces what is to be.
func (a *Anonymiser) rewrite(now, was reflect.Value, path string) {
	switch was.Type() {
	case timeType:
		now.Set(was)
		return
	case addrType:
		now.Set(reflect.ValueOf(a.addr(was.Interface().(netip.Addr))))
		return
	case addrPortType:
		x := was.Interface().(netip.AddrPort)
		now.Set(reflect.ValueOf(netip.AddrPortFrom(a.addr(x.Addr()), x.Port())))
		return
	case prefixType:
		now.Set(reflect.ValueOf(a.prefix(was.Interface().(netip.Prefix))))
		return
	}
	switch was.Kind() {
	case reflect.String:
		now.SetString(a.decide(was.Type(), path, was.String()))
	case reflect.Pointer:
		if !was.IsNil() {
			now.Set(reflect.New(was.Type().Elem()))
			a.rewrite(now.Elem(), was.Elem(), path)
		}
	case reflect.Slice:
		if !was.IsNil() {
			now.Set(reflect.MakeSlice(was.Type(), was.Len(), was.Len()))
			for i := range was.Len() {
				a.rewrite(now.Index(i), was.Index(i), path)
			}
		}
	case reflect.Map:
		if !was.IsNil() {
			now.Set(reflect.MakeMapWithSize(was.Type(), was.Len()))
			for it := was.MapRange(); it.Next(); {
				v := reflect.New(was.Type().Elem()).Elem()
				a.rewrite(v, it.Value(), path)
				now.SetMapIndex(reflect.ValueOf(a.key(it.Key().String())), v)
			}
		}
	case reflect.Struct:
		a.structure(now, was, path)
	default: // numbers and truths
		now.Set(was)
	}
}

// structure rewrites a struct field by field, but for those of which one field says
// what another is.
func (a *Anonymiser) structure(now, was reflect.Value, path string) {
	switch k := was.Addr().Interface().(type) {
	case *collect.ObjectKey:
		now.Set(reflect.ValueOf(a.object(*k)))
		return
	case *collect.Owner:
		now.Set(reflect.ValueOf(collect.Owner{Kind: a.known(k.Kind), Name: a.names.of(kindOf(k.Kind), k.Name), UID: a.names.of(uid, k.UID)}))
		return
	}
	for i := range was.NumField() {
		f := was.Type().Field(i)
		to := path + "." + f.Name
		if f.Anonymous {
			to = path
		}
		a.rewrite(now.Field(i), was.Field(i), to)
	}
	if k, ok := was.Addr().Interface().(*collect.KubeEvent); ok {
		now.Addr().Interface().(*collect.KubeEvent).Message = a.message(k)
	}
}

// decide replaces a string as was decided, or as a whole.
func (a *Anonymiser) decide(t reflect.Type, path, s string) string {
	if d := byType[t]; d != nil {
		return d(a, s)
	}
	if d := fields[path]; d != nil {
		return d(a, s)
	}
	return a.names.of(word, s)
}

// tidy restores what lists promise: rules are sorted, and digests are of what is there.
func tidy(p collect.Payload) {
	switch p := p.(type) {
	case *collect.Rules:
		for i := range p.Ports {
			tidyPort(&p.Ports[i])
		}
		slices.SortStableFunc(p.Ports, func(a, b collect.RulePort) int { return a.RulePortKey.Compare(b.RulePortKey) })
	case *collect.Keyframe:
		for i := range p.Ports {
			k := &p.Ports[i]
			tidyPort(&k.RulePort)
			if k.Digest = ""; k.Whole {
				k.Digest = k.RulePort.Digest()
			}
		}
		slices.SortStableFunc(p.Ports, func(a, b collect.KeyPort) int { return a.RulePortKey.Compare(b.RulePortKey) })
	}
}

func tidyPort(p *collect.RulePort) {
	slices.SortFunc(p.Frontends, func(a, b collect.Frontend) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), a.Addr.Compare(b.Addr))
	})
	slices.SortFunc(p.Endpoints, netip.AddrPort.Compare)
	if p.Sources != nil {
		p.Sources = collect.CanonicalPrefixes(p.Sources)
	}
}
