package kube

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/kconverge/kconverge/collect"
)

// log is a sink that can be waited on.
type log struct {
	t       *testing.T
	mu      sync.Mutex
	events  []collect.Event
	changed chan struct{}
}

func newLog(t *testing.T) *log { return &log{t: t, changed: make(chan struct{})} }

func (l *log) Emit(e collect.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, e)
	close(l.changed)
	l.changed = make(chan struct{})
}

func (l *log) snapshot() []collect.Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]collect.Event(nil), l.events...)
}

// await waits until an event from index from on matches, and returns its index.
func (l *log) await(what string, from int, match func(collect.Event) bool) int {
	l.t.Helper()
	deadline := time.After(60 * time.Second)
	for i := from; ; {
		l.mu.Lock()
		for ; i < len(l.events); i++ {
			if match(l.events[i]) {
				l.mu.Unlock()
				return i
			}
		}
		ch := l.changed
		l.mu.Unlock()
		select {
		case <-ch:
		case <-deadline:
			l.t.Fatalf("no event %q; got:\n%s", what, l.dump())
		}
	}
}

func (l *log) dump() string {
	var b strings.Builder
	for _, e := range l.snapshot() {
		line, err := collect.Marshal(e)
		if err != nil {
			l.t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s\n", line)
	}
	return b.String()
}

func isState(s collect.SourceStateName) func(collect.Event) bool {
	return func(e collect.Event) bool {
		p, ok := e.Payload.(*collect.SourceState)
		return ok && p.State == s
	}
}

func isVouch(how string) func(collect.Event) bool {
	return func(e collect.Event) bool {
		p, ok := e.Payload.(*collect.Vouch)
		return ok && p.How == how
	}
}

func isOp(op collect.Op, name string) func(collect.Event) bool {
	return func(e collect.Event) bool { return e.Op == op && e.Object.Name == name }
}

func isGap(e collect.Event) bool { _, ok := e.Payload.(*collect.Gap); return ok }

func never(t *testing.T, l *log, what string, from int, match func(collect.Event) bool) {
	t.Helper()
	for _, e := range l.snapshot()[from:] {
		if match(e) {
			t.Fatalf("unexpected %s; got:\n%s", what, l.dump())
		}
	}
}

var quickTiming = timing{
	retryMin: 5 * time.Millisecond, retryMax: 50 * time.Millisecond, slowRetry: 50 * time.Millisecond,
	silence: 30 * time.Second, grace: 300 * time.Millisecond, checkTimeout: 30 * time.Second,
}

// watchPods runs a source over the server's pods until the test ends, and then
// checks what holds for every stream.
func watchPods(t *testing.T, cfg *rest.Config, change func(*Options)) (*Source, *log) {
	t.Helper()
	// Cleanups run in reverse: the check comes after the source's end.
	l := newLog(t)
	t.Cleanup(func() { checkStream(t, l) })
	return watchPodsInto(t, l, cfg, change), l
}

// watchPodsInto is watchPods without the check, for servers whose
// resourceVersions begin again.
func watchPodsInto(t *testing.T, l *log, cfg *rest.Config, change func(*Options)) *Source {
	t.Helper()
	tm := quickTiming
	o := Options{Config: cfg, Resources: []collect.SourceID{collect.SourcePods}, timing: &tm}
	if change != nil {
		change(&o)
	}
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run returned %v after a cancellation", err)
		}
	})
	return s
}

// checkStream verifies what holds for every stream: ends stopped, times do not
// run backwards, nothing is emitted twice.
func checkStream(t *testing.T, l *log) {
	events := l.snapshot()
	if !isState(collect.SourceStopped)(events[len(events)-1]) {
		t.Errorf("the last event is not the stopped state")
	}
	lastRV := map[string]uint64{}
	for _, e := range events {
		if e.At.IsZero() || e.Source != collect.SourcePods {
			t.Errorf("event without time or source: %+v", e)
		}
		if !e.NotBefore.IsZero() && e.NotBefore.After(e.At) {
			t.Errorf("event cannot have happened: %+v", e)
		}
		if e.Op == collect.OpNone || e.Op == collect.OpGone {
			continue
		}
		if e.ResourceVersion <= lastRV[e.Object.Name] {
			t.Errorf("%s %s: resourceVersion %d after %d", e.Op, e.Object.Name, e.ResourceVersion, lastRV[e.Object.Name])
		}
		lastRV[e.Object.Name] = e.ResourceVersion
	}
}

// sameContent folds the events and compares with the server.
func sameContent(l *log, s *testServer) bool {
	have := map[string]string{}
	for _, e := range l.snapshot() {
		switch e.Op {
		case collect.OpListed, collect.OpAdded, collect.OpModified:
			have[e.Object.Name] = fmt.Sprintf("%s/%d/%s", e.UID, e.ResourceVersion, e.Payload.(*collect.Pod).Labels["v"])
		case collect.OpDeleted, collect.OpGone:
			delete(have, e.Object.Name)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(have) != len(s.pods) {
		return false
	}
	for n, p := range s.pods {
		if have[n] != fmt.Sprintf("%s/%s/%s", p.UID, p.ResourceVersion, p.Labels["v"]) {
			return false
		}
	}
	return true
}
