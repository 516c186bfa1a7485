package rulesync

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kconverge/kconverge/engine/desired"
)

// flatTable writes the flat layout into one network namespace: one table for
// each family. A change of endpoints writes elements only.
type flatTable struct {
	sock         *socket
	node         desired.NodeRef
	clusterCIDRs []netip.Prefix
	serviceCIDRs []netip.Prefix
	families     []*flatState
}

func newFlatTable(s *socket, o Options) *flatTable {
	t := &flatTable{sock: s, node: o.Node, clusterCIDRs: o.ClusterCIDRs, serviceCIDRs: o.ServiceCIDRs}
	for _, f := range []family{familyIPv4, familyIPv6} {
		if slices.Contains(o.Families, f.name) {
			st := newFlatState(f)
			st.unknown = true
			t.families = append(t.families, st)
		}
	}
	return t
}

// Close implements Table.
func (t *flatTable) Close() error { return t.sock.close() }

// flatState is what the table of one family holds, as far as this process wrote
// or read it.
type flatState struct {
	family   family
	services map[types.NamespacedName]flatRules
	// elements are those in the kernel, lists and sources what they make up by
	// frontend; the owners are what Services want. Two Services can want the
	// same frontend.
	elements     map[slot]value
	lists        map[listKey]list
	sources      map[string][]slot
	owners       map[slot]map[types.NamespacedName]value
	listOwners   map[listKey]map[types.NamespacedName]list
	sourceOwners map[string]map[types.NamespacedName][]netip.Prefix
	// numbers are those that endpoints keep, by the identity of their port. The
	// maps inside are not changed.
	numbers map[string]map[netip.AddrPort]uint32
	// made are the sets and maps that exist with their rules, beside those of
	// flatContainers.
	made map[string]bool
	// unknown: a transaction failed, or none was made yet.
	unknown bool
}

func newFlatState(f family) *flatState {
	return &flatState{
		family: f, services: map[types.NamespacedName]flatRules{},
		elements: map[slot]value{}, lists: map[listKey]list{}, sources: map[string][]slot{},
		owners: map[slot]map[types.NamespacedName]value{}, listOwners: map[listKey]map[types.NamespacedName]list{},
		sourceOwners: map[string]map[types.NamespacedName][]netip.Prefix{},
		numbers:      map[string]map[netip.AddrPort]uint32{},
		made:         map[string]bool{},
	}
}

// Write implements Table.
func (t *flatTable) Write(ctx context.Context, ch Change) (Result, error) {
	var out Result
	var notes []string
	for i := range t.families {
		r, err := t.writeFamily(ctx, &t.families[i], ch)
		if err != nil {
			t.families[i].unknown = true
			return out, fmt.Errorf("%s rules: %w", t.families[i].family.name, err)
		}
		out.Generation = r.Generation
		out.Transactions += r.Transactions
		notes = append(notes, r.Note)
	}
	notes = append(notes, t.refused())
	out.Note = strings.Join(slices.Compact(slices.DeleteFunc(notes, func(n string) bool { return n == "" })), "; ")
	return out, nil
}

// refused names what the Services ask for and the layout has no place for.
func (t *flatTable) refused() string {
	var out []string
	for _, st := range t.families {
		for _, name := range sorted(st.services) {
			if why := st.services[name].refused; why != "" {
				out = append(out, why)
			}
		}
	}
	slices.Sort(out)
	out = slices.Compact(out)
	if len(out) > 1 {
		return fmt.Sprintf("%s; and so for %d more", out[0], len(out)-1)
	}
	return strings.Join(out, "")
}

func (t *flatTable) writeFamily(ctx context.Context, at **flatState, ch Change) (Result, error) {
	st := *at
	full := ch.Full || st.unknown
	changed := map[types.NamespacedName]flatRules{}
	for name, ports := range ch.Services {
		changed[name] = t.layout(st.family, ports)
	}
	if full && !ch.Full {
		// Everything, of which only the changes were handed in.
		all := maps.Clone(st.services)
		maps.Copy(all, changed)
		changed = all
	}
	for try := 1; ; try++ {
		if err := ctx.Err(); err != nil {
			return Result{}, err
		}
		next, res, err := t.transact(st, changed, full)
		if err == nil {
			*at = next
		}
		if !full || !errors.Is(err, errRaced) || try == tries {
			return res, err
		}
	}
}

// transact makes one attempt. With full, errRaced means that nothing was done and
// that it can be made anew.
func (t *flatTable) transact(st *flatState, changed map[types.NamespacedName]flatRules, full bool) (*flatState, Result, error) {
	gen, err := t.sock.generation()
	if err != nil {
		return nil, Result{}, fmt.Errorf("read the rule generation: %w", err)
	}
	w := &work{batch: batch{family: st.family.proto, table: flatTableName}}
	var surplus []string
	touched := newFlatTouched()
	if full {
		// Partial changes are made in place: after a failure this rebuilds
		// everything.
		if st, err = t.read(st.family); err != nil {
			return nil, Result{}, fmt.Errorf("read the rules: %w", err)
		}
		for s := range st.elements {
			touched.slots[s] = true
		}
		for l := range st.lists {
			touched.lists[l] = true
		}
		for k := range st.sources {
			touched.sources[k] = true
		}
		surplus = slices.Sorted(maps.Keys(st.made))
		clear(st.made) // setup empties the chains with their rules
		w.unit(func(b *batch) { t.setup(b, st.family) })
	}
	for _, name := range sorted(changed) {
		st.own(name, changed[name], touched)
	}
	st.plan(w, touched)
	w.unit(func(b *batch) {
		for _, set := range surplus {
			if st.made[set] {
				continue
			}
			if s, ok := seatOf(set); ok {
				s.unmake(b)
			} else {
				b.deleteSet(set)
			}
		}
	})
	res, err := t.sock.write(w, gen, full)
	return st, res, err
}

// flatTouched is what of a table a change concerns.
type flatTouched struct {
	slots   map[slot]bool
	lists   map[listKey]bool
	sources map[string]bool // frontends
}

func newFlatTouched() flatTouched {
	return flatTouched{map[slot]bool{}, map[listKey]bool{}, map[string]bool{}}
}

// own notes what a Service wants now, and what of the table that concerns.
func (st *flatState) own(name types.NamespacedName, r flatRules, touched flatTouched) {
	old := st.services[name]
	for s := range old.elements {
		touched.slots[s] = true
		disown(st.owners, s, name)
	}
	for l := range old.lists {
		touched.lists[l] = true
		disown(st.listOwners, l, name)
	}
	st.ownSources(name, old, r, touched.sources)
	for port := range old.kept {
		if r.kept[port] == nil {
			delete(st.numbers, port)
		}
	}
	for port, eps := range r.kept {
		st.number(port, eps)
	}
	delete(st.services, name)
	if len(r.lists) == 0 && len(r.elements) == 0 {
		return
	}
	st.services[name] = r
	for s, v := range r.elements {
		touched.slots[s] = true
		if st.owners[s] == nil {
			st.owners[s] = map[types.NamespacedName]value{}
		}
		st.owners[s][name] = v
	}
	for k, l := range r.lists {
		touched.lists[k] = true
		if st.listOwners[k] == nil {
			st.listOwners[k] = map[types.NamespacedName]list{}
		}
		st.listOwners[k][name] = l
	}
}

func disown[K comparable, V any](owners map[K]map[types.NamespacedName]V, k K, name types.NamespacedName) {
	delete(owners[k], name)
	if len(owners[k]) == 0 {
		delete(owners, k)
	}
}

// first is what holds where Services contradict each other: the first by name.
func first[V any](owners map[types.NamespacedName]V) (v V, ok bool) {
	if len(owners) == 0 {
		return v, false
	}
	return owners[sorted(owners)[0]], true
}

// plan brings the given places to what is wanted.
func (st *flatState) plan(w *work, touched flatTouched) {
	slots, want := touched.slots, map[slot]value{}
	for s := range slots {
		if v, ok := first(st.owners[s]); ok {
			want[s] = v
		}
	}
	for k := range touched.lists {
		had := st.lists[k]
		for s := range k.elementsOf(had) {
			slots[s] = true
		}
		l, ok := first(st.listOwners[k])
		if !ok {
			delete(st.lists, k)
			continue
		}
		l.endpoints = place(had.endpoints, l.endpoints)
		l.numbers = st.numbers[l.port]
		st.lists[k] = l
		for s, v := range k.elementsOf(l) {
			slots[s] = true
			want[s] = v
		}
		st.need(w, k.plane, l)
	}
	st.planSources(touched.sources, slots, want)
	var add, change, remove []slot
	for s := range slots {
		v, wanted := want[s]
		had, present := st.elements[s]
		switch {
		case wanted && !present:
			add = append(add, s)
		case wanted && had != v:
			change = append(change, s)
		case !wanted && present:
			remove = append(remove, s)
			delete(st.elements, s)
		}
		if wanted {
			st.elements[s] = v
		}
	}
	// Should it take several transactions, a key is never in a set whose
	// number of endpoints is not there: endpoints come before their key and go
	// after it. Ranges of sources may not overlap: they go first.
	inOrder := func(a, b slot) int {
		return cmp.Or(cmp.Compare(rankOf(a.container), rankOf(b.container)), compareSlots(a, b))
	}
	slices.SortFunc(add, inOrder)
	slices.SortFunc(change, compareSlots)
	slices.SortFunc(remove, func(a, b slot) int { return inOrder(b, a) })
	ranges := 0
	for ranges < len(remove) && isRange(remove[ranges].container) {
		ranges++
	}
	removal := func(b *batch, container string, run []slot) {
		b.elements(unix.NFT_MSG_DELSETELEM, container, 0, st.written(run))
	}
	w.eachRun(remove[:ranges], removal)
	w.eachRun(add, func(b *batch, container string, run []slot) {
		b.elements(unix.NFT_MSG_NEWSETELEM, container, 0, st.written(run))
	})
	w.eachRun(change, func(b *batch, container string, run []slot) {
		// The same key with another value would be refused.
		b.elements(unix.NFT_MSG_DELSETELEM, container, 0, st.written(run))
		b.elements(unix.NFT_MSG_NEWSETELEM, container, 0, st.written(run))
	})
	w.eachRun(remove[ranges:], removal)
}

// rankOf orders containers by when their elements are added; removed they are in
// the opposite order.
func rankOf(container string) int {
	switch {
	case strings.HasSuffix(container, planeMain.endpoints()):
		return 0
	case isRange(container):
		return 3
	case container == planeMain.choices() || container == planeShort.choices():
		return 1
	}
	return 2
}

// need makes the sets and the rules for a list unless they exist.
func (st *flatState) need(w *work, p *plane, l list) {
	n := len(l.endpoints)
	if n == 0 {
		return
	}
	if l.stay > 0 {
		st.needSeats(w, l)
	}
	set := p.set(l.stay > 0, n)
	if st.made[set] {
		return
	}
	st.made[set] = true
	w.unit(func(b *batch) {
		if l.stay > 0 {
			p.addKeptCount(b, st.family, n)
		} else {
			p.addCount(b, st.family, n)
		}
	})
}

func (st *flatState) written(run []slot) []element {
	out := make([]element, len(run))
	for i, s := range run {
		v := st.elements[s]
		out[i] = element{key: s.key, verdict: v.verdict, comment: v.comment}
		if isRange(s.container) {
			out[i].key, out[i].keyEnd = s.key[:len(s.key)/2], s.key[len(s.key)/2:]
		}
		if v.data != "" {
			out[i].data = []byte(v.data)
		}
	}
	return out
}

// read dumps the table. Consistency is up to the transaction that follows: it
// is refused when the generation moved.
func (t *flatTable) read(f family) (*flatState, error) {
	st := newFlatState(f)
	sets, err := t.sock.sets(f.proto, flatTableName)
	if err != nil {
		return nil, err
	}
	known := map[string]bool{}
	for _, s := range flatContainers(f) {
		known[s.name] = true
	}
	for _, set := range sets {
		_, isClients := seatOf(set)
		counts := slices.ContainsFunc(planes, func(p *plane) bool { _, _, ok := p.parse(set); return ok })
		if isClients || counts {
			st.made[set] = true
		}
		if !counts && !known[set] {
			continue // packets fill the clients
		}
		err := t.sock.elements(f.proto, flatTableName, set, func(e element) {
			s := slot{set, e.key + e.keyEnd}
			st.elements[s] = value{string(e.data), e.verdict, e.comment}
			if set == flatSources {
				st.readSource(s)
			}
		})
		if err != nil {
			return nil, err
		}
	}
	st.findLists()
	st.readKept()
	return st, nil
}

// seatOf is the seat whose set of clients this is.
func seatOf(set string) (seat, bool) {
	text, ok := strings.CutPrefix(set, prefixClients)
	if !ok {
		return seat{}, false
	}
	return parseSeat(text)
}

// findLists finds the lists that the elements make up, with holes where an
// element is missing.
func (st *flatState) findLists() {
	for s := range st.elements {
		for _, p := range planes {
			affinity, n, ok := p.parse(s.container)
			if !ok {
				continue
			}
			k := listKey{p, s.key}
			if len(st.lists[k].endpoints) >= n {
				continue
			}
			l := list{endpoints: make([]netip.AddrPort, n)}
			for i := range l.endpoints {
				at, number := slot{p.endpoints(), s.key + string(host32(uint32(i)))}, uint32(0)
				if affinity {
					chain := st.elements[slot{p.choices(), at.key}].verdict.chain
					if s, ok := parseSeat(strings.TrimPrefix(chain, p.prefix+prefixStay)); ok {
						number = s.number
					}
					at = slot{p.keptEndpoints(), s.key + string(host32(number))}
				}
				l.endpoints[i] = addrPortOf(st.elements[at].data)
			}
			st.lists[k] = l
		}
	}
}

// addrPortOf is the reverse of addrPortValue; invalid for anything else.
func addrPortOf(data string) netip.AddrPort {
	if len(data) < 4 {
		return netip.AddrPort{}
	}
	a, ok := netip.AddrFromSlice([]byte(data[:len(data)-4]))
	if !ok {
		return netip.AddrPort{}
	}
	return netip.AddrPortFrom(a, binary.BigEndian.Uint16([]byte(data[len(data)-4:])))
}
