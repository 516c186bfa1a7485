package rulesync

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kconverge/kconverge/engine/desired"
)

const (
	// staleAfter is how long an emptied chain is kept: kernels before 6.2 may
	// still count a map element that pointed to it.
	staleAfter = time.Second
	// tries is how often a transaction is started anew because somebody else
	// committed in between.
	tries = 5
)

// kernelTable writes kube-proxy's nftables layout into one network namespace:
// one table for each family.
type kernelTable struct {
	sock         *socket
	node         desired.NodeRef
	clusterCIDRs []netip.Prefix
	serviceCIDRs []netip.Prefix
	families     []*state
}

func newKernelTable(o Options) (Table, error) {
	s, err := dial(o.NetNS)
	if err != nil {
		return nil, err
	}
	if o.Dataplane == Flat {
		return newFlatTable(s, o), nil
	}
	t := &kernelTable{sock: s, node: o.Node, clusterCIDRs: o.ClusterCIDRs, serviceCIDRs: o.ServiceCIDRs}
	for _, f := range []family{familyIPv4, familyIPv6} {
		if slices.Contains(o.Families, f.name) {
			t.families = append(t.families, &state{family: f, stale: map[string]time.Time{}, services: map[types.NamespacedName]rules{}, unknown: true})
		}
	}
	return t, nil
}

// Close implements Table.
func (t *kernelTable) Close() error { return t.sock.close() }

// state is what the table of one family holds, as far as this process wrote or
// read it.
type state struct {
	family   family
	services map[types.NamespacedName]rules
	// elements are those in the kernel; owners those that Services want. Two
	// Services can want the same one, for instance an external address.
	elements map[slot]verdict
	owners   map[slot]map[types.NamespacedName]target
	// stale are emptied chains and since when.
	stale map[string]time.Time
	// unknown: a transaction failed, or none was made yet.
	unknown bool
}

// Write implements Table.
func (t *kernelTable) Write(ctx context.Context, ch Change) (Result, error) {
	var out Result
	for _, st := range t.families {
		r, err := t.writeFamily(ctx, st, ch)
		if err != nil {
			st.unknown = true
			// What was emptied is not known any more; a full sync finds out.
			clear(st.stale)
			return out, fmt.Errorf("%s rules: %w", st.family.name, err)
		}
		out.Generation = r.Generation
		out.Transactions += r.Transactions
		if r.Note != "" {
			out.Note = r.Note
		}
	}
	return out, nil
}

func (t *kernelTable) writeFamily(ctx context.Context, st *state, ch Change) (Result, error) {
	full := ch.Full || st.unknown
	swept, err := t.deleteStale(st, ch.Now)
	if err != nil {
		full = true
	}
	changed := map[types.NamespacedName]rules{}
	for name, ports := range ch.Services {
		changed[name] = t.layout(st.family, ports)
	}
	if full && !ch.Full {
		// Everything, of which only the changes were handed in.
		all := maps.Clone(st.services)
		maps.Copy(all, changed)
		changed = all
	}
	var res Result
	for try := 1; ; try++ {
		if err := ctx.Err(); err != nil {
			return res, err
		}
		res, err = t.transact(st, changed, full, ch.Now)
		if !full || !errors.Is(err, errRaced) || try == tries {
			break
		}
	}
	res.Transactions += swept
	return res, err
}

// transact makes one attempt. With full, errRaced means that nothing was done and
// that it can be made anew.
func (t *kernelTable) transact(st *state, changed map[types.NamespacedName]rules, full bool, now time.Time) (Result, error) {
	gen, err := t.sock.generation()
	if err != nil {
		return Result{}, fmt.Errorf("read the rule generation: %w", err)
	}
	w := &work{batch: batch{family: st.family.proto, table: tableName}}
	var next *state
	if full {
		next, err = t.planFull(st, w, changed, now)
	} else {
		next, err = t.planPartial(st, w, changed, now), nil
	}
	if err != nil {
		return Result{}, err
	}
	res, err := t.sock.write(w, gen, full)
	if err != nil {
		return res, err
	}
	*st = *next
	return res, nil
}

// planFull writes everything and removes what else the table holds.
func (t *kernelTable) planFull(st *state, w *work, services map[types.NamespacedName]rules, now time.Time) (*state, error) {
	had, err := t.read(st.family)
	if err != nil {
		return nil, fmt.Errorf("read the rules: %w", err)
	}
	next := &state{family: st.family, services: map[types.NamespacedName]rules{}, elements: had.elements, owners: map[slot]map[types.NamespacedName]target{}, stale: maps.Clone(st.stale)}
	w.unit(func(b *batch) { t.setup(b, st.family) })
	keepChains, keepSets := map[string]bool{}, map[string]bool{}
	for _, name := range sorted(services) {
		r := services[name]
		next.own(name, r)
		if len(r.chains) > 0 {
			w.unit(func(b *batch) { r.write(b, st.family) })
		}
		for _, c := range r.chains {
			keepChains[c.name] = true
		}
		for _, a := range r.affinity {
			keepSets[a.name] = true
		}
	}
	slots := map[slot]bool{}
	for s := range next.owners {
		slots[s] = true
	}
	for s := range had.elements {
		slots[s] = true
	}
	next.writeElements(w, slots)
	var empty, sets []string
	for _, c := range had.chains {
		if keepChains[c] {
			delete(next.stale, c)
		} else {
			empty = append(empty, c)
			next.stale[c] = now
		}
	}
	for _, s := range had.affinity {
		if !keepSets[s] {
			sets = append(sets, s)
		}
	}
	w.retire(empty, sets)
	return next, nil
}

// planPartial writes the Services that changed, each as a whole.
func (t *kernelTable) planPartial(st *state, w *work, changed map[types.NamespacedName]rules, now time.Time) *state {
	// In place: after a failure a full plan rebuilds everything.
	next := *st
	slots := map[slot]bool{}
	var empty, sets []string
	for _, name := range sorted(changed) {
		old, r := st.services[name], changed[name]
		for s := range old.elements {
			slots[s] = true
			delete(next.owners[s], name)
			if len(next.owners[s]) == 0 {
				delete(next.owners, s)
			}
		}
		for s := range r.elements {
			slots[s] = true
		}
		next.own(name, r)
		if len(r.chains) > 0 {
			w.unit(func(b *batch) { r.write(b, st.family) })
		}
		for _, c := range r.chains {
			delete(next.stale, c.name)
		}
		for _, c := range old.chains {
			if !slices.ContainsFunc(r.chains, func(n chain) bool { return n.name == c.name }) {
				empty = append(empty, c.name)
				next.stale[c.name] = now
			}
		}
		for _, a := range old.affinity {
			if !slices.ContainsFunc(r.affinity, func(n affinitySet) bool { return n.name == a.name }) {
				sets = append(sets, a.name)
			}
		}
	}
	next.writeElements(w, slots)
	w.retire(empty, sets)
	return &next
}

// own notes what a Service wants.
func (st *state) own(name types.NamespacedName, r rules) {
	if len(r.chains) == 0 && len(r.elements) == 0 {
		delete(st.services, name)
		return
	}
	st.services[name] = r
	for s, e := range r.elements {
		if st.owners[s] == nil {
			st.owners[s] = map[types.NamespacedName]target{}
		}
		st.owners[s][name] = e
	}
}

// want is what an element should say. Where Services contradict each other
// kube-proxy leaves it to chance; here the first by name wins.
func (st *state) want(s slot) (target, bool) {
	owners := st.owners[s]
	if len(owners) == 0 {
		return target{}, false
	}
	return owners[sorted(owners)[0]], true
}

// writeElements brings the elements in the given places to what is wanted. New
// ones come before old ones go, in case it takes several transactions.
func (st *state) writeElements(w *work, slots map[slot]bool) {
	var add, change, remove []slot
	for _, s := range slices.SortedFunc(maps.Keys(slots), compareSlots) {
		want, wanted := st.want(s)
		had, present := st.elements[s]
		switch {
		case wanted && !present:
			add = append(add, s)
			st.elements[s] = want.verdict
		case wanted && had != want.verdict:
			change = append(change, s)
			st.elements[s] = want.verdict
		case !wanted && present:
			remove = append(remove, s)
			delete(st.elements, s)
		}
	}
	w.eachRun(add, func(b *batch, container string, run []slot) {
		b.elements(unix.NFT_MSG_NEWSETELEM, container, 0, st.elementsOf(run))
	})
	w.eachRun(change, func(b *batch, container string, run []slot) {
		// The same key with another value would be refused.
		b.elements(unix.NFT_MSG_DELSETELEM, container, 0, st.elementsOf(run))
		b.elements(unix.NFT_MSG_NEWSETELEM, container, 0, st.elementsOf(run))
	})
	w.eachRun(remove, func(b *batch, container string, run []slot) {
		b.elements(unix.NFT_MSG_DELSETELEM, container, 0, st.elementsOf(run))
	})
}

func (st *state) elementsOf(run []slot) []element {
	out := make([]element, len(run))
	for i, s := range run {
		e, _ := st.want(s)
		out[i] = element{key: s.key, verdict: e.verdict, comment: e.comment}
	}
	return out
}

// deleteStale deletes chains that were emptied long enough ago, in a
// transaction of its own, and returns how many transactions that took.
func (t *kernelTable) deleteStale(st *state, now time.Time) (int, error) {
	b := &batch{family: st.family.proto, table: tableName}
	for _, c := range slices.Sorted(maps.Keys(st.stale)) {
		if st.stale[c].Before(now.Add(-staleAfter)) {
			b.deleteChain(c)
			delete(st.stale, c)
		}
	}
	if len(b.buf) == 0 {
		return 0, nil
	}
	for try := 1; ; try++ {
		gen, err := t.sock.generation()
		if err != nil {
			return 0, err
		}
		_, err = t.sock.commit(st.family.proto, b.buf, gen)
		if err == nil {
			return 1, nil
		}
		if !errors.Is(err, errRaced) || try == tries {
			return 0, err
		}
	}
}
