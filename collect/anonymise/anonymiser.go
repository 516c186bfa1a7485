package anonymise

import (
	"crypto/rand"
	"net/netip"
	"reflect"

	"github.com/kconverge/kconverge/collect"
)

// Anonymiser rewrites the events of one session. It belongs to one goroutine.
type Anonymiser struct {
	names names
	addrs addresses
	// seen are the addresses that Learn met, ranges the prefixes.
	seen   map[netip.Addr]bool
	ranges map[netip.Prefix]bool
	back   map[string]string // of tests: what was replaced, by what it became
}

// New returns an Anonymiser whose replacements are its own: those of two have nothing
// to do with each other.
func New() *Anonymiser {
	return &Anonymiser{names: newNames(), addrs: newAddresses(randomKey()), seen: map[netip.Addr]bool{}, ranges: map[netip.Prefix]bool{}}
}

func randomKey() (key [16]byte) {
	_, _ = rand.Read(key[:]) // never fails
	return key
}

// Learn looks at an event without changing it. When all events have been learnt before
// the first is rewritten, replacements sort as the names do, none is anything that
// the events hold, and texts keep no word that is a name, too.
func (a *Anonymiser) Learn(e collect.Event) { a.event(e) }

// Learnt ends learning.
func (a *Anonymiser) Learnt() {
	a.names.settle()
	for range 100 {
		if !a.addressesMeet() {
			return
		}
		a.addrs = newAddresses(randomKey())
	}
}

// addressesMeet tells that an address, or a prefix, would be replaced by an address
// that was met.
func (a *Anonymiser) addressesMeet() bool {
	for was := range a.seen {
		if now := a.addrs.replace(was); a.seen[now] && !kept(was) {
			return true
		}
	}
	for was := range a.ranges {
		if now := a.prefix(was).Addr(); a.seen[now] && !kept(now) {
			return true
		}
	}
	return false
}

// Event gives an event in which nothing is left of the names and addresses of e, which
// stays as it is.
func (a *Anonymiser) Event(e collect.Event) collect.Event { return a.event(e) }

func (a *Anonymiser) event(e collect.Event) collect.Event {
	e.Source = collect.SourceID(a.source(string(e.Source)))
	e.Op = collect.Op(a.known(string(e.Op)))
	e.Object = a.object(e.Object)
	e.UID = a.names.of(uid, e.UID)
	if e.Payload != nil {
		was := reflect.ValueOf(e.Payload).Elem()
		now := reflect.New(was.Type())
		a.rewrite(now.Elem(), was, e.Payload.Type())
		e.Payload = now.Interface().(collect.Payload)
		tidy(e.Payload)
	}
	return e
}

func (a *Anonymiser) object(k collect.ObjectKey) collect.ObjectKey {
	return collect.ObjectKey{Kind: a.known(k.Kind), Namespace: a.names.of(namespace, k.Namespace), Name: a.names.of(kindOf(k.Kind), k.Name)}
}

// kindOf is what an object of a kind is called when its name is replaced.
func kindOf(kind string) kindOfName {
	switch kind {
	case "Node":
		return node
	case "Service", "Endpoints":
		return service
	case "Pod":
		return pod
	case "ReplicaSet":
		return replicaSet
	}
	return object
}

// addr replaces an address.
func (a *Anonymiser) addr(x netip.Addr) netip.Addr {
	if !x.IsValid() {
		return x
	}
	if z := x.Zone(); z != "" {
		return a.addr(x.WithZone("")).WithZone(a.names.of(word, z))
	}
	if !a.names.settled {
		a.seen[x] = true
	}
	return a.addrs.replace(x)
}

// prefix replaces a prefix: what is in it is in what it becomes.
func (a *Anonymiser) prefix(p netip.Prefix) netip.Prefix {
	if !p.IsValid() {
		return p
	}
	was := p.Masked()
	if !a.names.settled {
		a.ranges[was] = true
	}
	now, err := a.addrs.replace(was.Addr()).Prefix(p.Bits())
	if err != nil {
		return netip.Prefix{}
	}
	return now
}
