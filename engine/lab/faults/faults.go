package faults

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sort"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/kconverge/kconverge/collect"
)

// Active is a fault that is in force.
type Active struct {
	Setting
	Since time.Time
	// By is who set it: "flag", "screen", "scenario", "ConfigMap".
	By string
}

// term is an Active as the hooks read it.
type term struct {
	Active
	amount amount
	target target
	// dose spreads a share over the occasions.
	mu   sync.Mutex
	dose float64
}

// strikes reports whether the next occasion is among the share that the fault hits.
// They are spread evenly, so that a run can be repeated.
func (t *term) strikes() bool {
	if t.amount.share >= 1 {
		return true
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.dose += t.amount.share
	if t.dose < 1-1e-9 {
		return false
	}
	t.dose--
	return true
}

// state is what is in force at a time. It is immutable but for the terms' doses.
type state struct {
	terms map[string][]*term // by name
	// over is closed when another state has taken its place.
	over chan struct{}
}

// Options configure Faults.
type Options struct {
	// Clock stamps events; the wall clock when nil.
	Clock collect.Clock
	// Nodes are the names that targets may give; none means any.
	Nodes []string
	// OwnPlane: the lab's own API server and controllers run.
	OwnPlane bool
}

// Faults are those of one lab. All methods are safe for concurrent use.
type Faults struct {
	o     Options
	state atomic.Pointer[state]
	// writer is how the competing writer writes.
	writer atomic.Pointer[kubernetes.Interface]

	streamsMu sync.Mutex
	streams   map[*stream]bool // open watches
	joinedMu  sync.Mutex
	joined    map[string]bool // nodes whose proxy has its own watch

	mu      sync.Mutex
	sink    collect.Sink // nil before Begin
	waiting []collect.Event
	version uint64   // of the ConfigMap that was applied last
	claims  []*claim // what this program is writing into it, oldest first
}

// New returns Faults of which none is in force.
func New(o Options) *Faults {
	if o.Clock == nil {
		o.Clock = collect.SystemClock{}
	}
	f := &Faults{o: o, streams: map[*stream]bool{}, joined: map[string]bool{}}
	f.state.Store(&state{over: make(chan struct{})})
	return f
}

// Begin names where the events go, those that are waiting included.
func (f *Faults) Begin(sink collect.Sink) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sink = sink
	for _, e := range f.waiting {
		sink.Emit(e)
	}
	f.waiting = nil
}

// End clears everything and tells so.
func (f *Faults) End() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.replace(nil, just("the lab's end"))
}

// Check says what is wrong with a setting here, nil for nothing: a node that is not
// there, a fault that this control plane does not have.
func (f *Faults) Check(s Setting) error {
	d, err := Lookup(s.Name)
	if err != nil {
		return err
	}
	if _, err := parseOne(d, s.value()); err != nil {
		return err
	}
	if d.OwnPlane && !f.o.OwnPlane && !s.Off() {
		return fmt.Errorf("fault %s acts in the lab's own control plane, and Kubernetes' own programs run here: start the lab without --control-plane", s.Name)
	}
	if s.Target == "" || len(f.o.Nodes) == 0 {
		return nil
	}
	t, err := d.target(s.Target)
	if err != nil {
		return err
	}
	for _, n := range t.nodes {
		if !slices.Contains(f.o.Nodes, n) {
			return fmt.Errorf("fault %s: there is no node %q: there are %s to %s", s.Name, n, f.o.Nodes[0], f.o.Nodes[len(f.o.Nodes)-1])
		}
	}
	return nil
}

// Change sets and clears faults in this process alone: before there is a ConfigMap.
// What it set is in force when it returns. When one of the settings is wrong nothing
// is changed.
func (f *Faults) Change(settings []Setting, by string) error {
	var wrong error
	for _, s := range settings {
		wrong = errors.Join(wrong, f.Check(s))
	}
	if wrong != nil {
		return wrong
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.replace(merge(f.settings(), settings), just(by))
	return nil
}

// merge applies changes to what is set.
func merge(have, changes []Setting) []Setting {
	out := slices.Clone(have)
	for _, c := range changes {
		out = slices.DeleteFunc(out, func(s Setting) bool {
			return s.Name == c.Name && (s.Target == c.Target || c.Off() && c.Target == "")
		})
		if !c.Off() {
			out = append(out, c)
		}
	}
	return out
}

// settings are those in force.
func (f *Faults) settings() (out []Setting) {
	for _, a := range f.List() {
		out = append(out, a.Setting)
	}
	return out
}

// List gives the faults that are in force, by name and target.
func (f *Faults) List() (out []Active) {
	for _, terms := range f.state.Load().terms {
		for _, t := range terms {
			out = append(out, t.Active)
		}
	}
	sort.Slice(out, func(i, j int) bool {
		a, b := out[i], out[j]
		return a.Name < b.Name || a.Name == b.Name && a.Target < b.Target
	})
	return out
}

// Changed is closed when other faults are in force than now.
func (f *Faults) Changed() <-chan struct{} { return f.state.Load().over }

// just says that one did it all.
func just(by string) func(Setting, bool) string { return func(Setting, bool) string { return by } }

// replace puts exactly these in force, which are known to be right, and tells what
// began and what ended, and by whom. The caller holds f.mu.
func (f *Faults) replace(settings []Setting, by func(s Setting, ended bool) string) {
	old := f.state.Load()
	left := map[string]*term{}
	for _, terms := range old.terms {
		for _, t := range terms {
			left[t.String()] = t
		}
	}
	now := f.o.Clock.Now()
	next := map[string][]*term{}
	var began []*term
	for _, s := range settings {
		t := left[s.String()]
		delete(left, s.String())
		if t == nil {
			t = newTerm(Active{Setting: s, Since: now, By: by(s, false)})
			began = append(began, t)
		}
		next[s.Name] = append(next[s.Name], t)
	}
	if len(began) == 0 && len(left) == 0 {
		return
	}
	if len(next) == 0 {
		next = nil // looked at before anything else
	}
	f.state.Store(&state{terms: next, over: make(chan struct{})})
	close(old.over)
	f.checkStreams()
	for _, key := range slices.Sorted(maps.Keys(left)) {
		f.tell(now, &collect.Fault{Name: left[key].Name, Amount: left[key].Amount, Target: left[key].Target, Ended: true, By: by(left[key].Setting, true)})
	}
	for _, t := range began {
		f.tell(now, &collect.Fault{Name: t.Name, Amount: t.Amount, Target: t.Target, By: t.By})
	}
}

// newTerm makes a term of a setting that was checked.
func newTerm(a Active) *term {
	t := &term{Active: a}
	d, err := Lookup(a.Name)
	if err == nil {
		t.amount, err = d.amount(a.Amount)
	}
	if err == nil && a.Target != "" {
		t.target, err = d.target(a.Target)
	}
	if err != nil {
		panic("a fault that was checked is wrong: " + err.Error())
	}
	return t
}

// tell emits an event, later when there is no sink yet.
func (f *Faults) tell(at time.Time, p *collect.Fault) {
	e := collect.Event{At: at, Source: collect.SourceUser, Payload: p}
	if f.sink == nil {
		f.waiting = append(f.waiting, e)
		return
	}
	f.sink.Emit(e)
}

// of are the terms of a fault, none while it is not set.
func (f *Faults) of(name string) []*term { return f.state.Load().terms[name] }
