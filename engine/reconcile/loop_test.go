package reconcile

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/kconverge/kconverge/collect"
)

// bareLoop runs a loop without informers until the test ends.
func bareLoop(t *testing.T, c clock.WithTicker, sync syncFunc) (*loop, *steps) {
	s := newSteps()
	o := &Options{Sink: s, Clock: c, Workers: 2}
	l := newLoop("test", o, corelisters.NewServiceLister(cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})),
		workqueue.NewTypedItemExponentialFailureRateLimiter[string](minBackoff, maxBackoff))
	l.sync = sync
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
		s.checkCausal(t)
	})
	return l, s
}

func TestBurstIsMergedIntoOneSync(t *testing.T) {
	entered, release := make(chan string), make(chan struct{})
	l, s := bareLoop(t, clock.RealClock{}, func(_ context.Context, _ int, key string) ([]string, error) {
		entered <- key
		<-release
		return nil, nil
	})
	// Both workers are busy, so what is added waits.
	l.queue.Add("ns/busy-1")
	l.queue.Add("ns/busy-2")
	<-entered
	<-entered
	for range 20 {
		l.queue.Add("ns/web")
		l.queue.Add("ns/busy-1") // while it is worked on: once more afterwards
	}
	release <- struct{}{}
	release <- struct{}{}
	got := []string{<-entered, <-entered}
	release <- struct{}{}
	release <- struct{}{}
	s.await(t, "test", "ns", "web", 0, is("unchanged"))
	s.await(t, "test", "ns", "busy-1", 4, is("unchanged"))
	if strings.Join(got, " ") != "ns/web ns/busy-1" && strings.Join(got, " ") != "ns/busy-1 ns/web" {
		t.Errorf("syncs after the burst: %v", got)
	}
	started := s.of("test", "ns", "web")[1]
	if started.Step != "started" || started.Detail != "20 changes at once" || started.Took <= 0 {
		t.Errorf("started = %+v", started)
	}
	if n := len(s.of("test", "ns", "busy-1")); n != 6 {
		t.Errorf("busy-1 took %d steps, want two rounds of three", n)
	}
}

func TestRetriesBackOffAndEnd(t *testing.T) {
	fake := clocktesting.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	l, s := bareLoop(t, fake, func(context.Context, int, string) ([]string, error) {
		return nil, errors.New("no")
	})
	l.queue.Add("ns/web")
	wait := time.Second
	for try := 1; try <= maxRetries; try++ {
		i := s.await(t, "test", "ns", "web", 0, func(p collect.ReconcileStep) bool { return p.Step == "retry" && p.Tries == try })
		// Not a moment before the backoff is over.
		n := len(s.of("test", "ns", "web"))
		if n != i+1 {
			t.Fatalf("try %d was not waited for: %s", try+1, dump(s.of("test", "ns", "web")))
		}
		advance(t, fake, l, wait)
		wait = min(2*wait, maxBackoff)
	}
	i := s.await(t, "test", "ns", "web", 0, is("dropped"))
	all := s.of("test", "ns", "web")
	if all[i].Tries != maxRetries || !strings.Contains(all[i].Detail, "15 retries: no") || i != len(all)-1 {
		t.Errorf("dropped = %+v, %d steps follow", all[i], len(all)-1-i)
	}
	// A change begins anew.
	l.queue.Add("ns/web")
	j := s.await(t, "test", "ns", "web", i+1, is("retry"))
	if p := s.of("test", "ns", "web")[j]; p.Tries != 1 {
		t.Errorf("after it was dropped: %+v", p)
	}
}

// advance moves the clock past a backoff once the queue waits for it.
func advance(t *testing.T, fake *clocktesting.FakeClock, l *loop, d time.Duration) {
	t.Helper()
	before := l.o.Sink.(*steps)
	n := len(before.of("test", "ns", "web"))
	fake.Step(d - time.Millisecond)
	for range 3 {
		// The queue may arm its timer only now; it must not be ready yet.
		if len(before.of("test", "ns", "web")) != n {
			t.Fatalf("tried again before %v were over", d)
		}
	}
	// Armed late, the timer counts from a later now: step until it fires, by more where
	// the backoff is long.
	deadline := time.After(time.Minute)
	for len(before.of("test", "ns", "web")) == n {
		before.mu.Lock()
		changed := before.changed
		before.mu.Unlock()
		fake.Step(max(time.Millisecond, d/1000))
		select {
		case <-changed:
		case <-deadline:
			t.Fatal("no retry")
		case <-time.After(time.Millisecond):
		}
	}
}

func addresses(from, n int, uid string) (out []corev1.EndpointAddress) {
	for i := range n {
		out = append(out, corev1.EndpointAddress{
			IP:        fmt.Sprintf("10.%d.%d.%d", (from+i)>>16, (from+i)>>8&255, (from+i)&255),
			TargetRef: &corev1.ObjectReference{Kind: "Pod", UID: types.UID(fmt.Sprintf("%s-%d", uid, from+i))},
		})
	}
	return out
}

func TestRepackJoinsPortsWithEqualAddresses(t *testing.T) {
	http, metrics := corev1.EndpointPort{Name: "http", Port: 80}, corev1.EndpointPort{Name: "metrics", Port: 9100}
	a, b := addresses(1, 1, "a"), addresses(2, 1, "b")
	got := repack([]corev1.EndpointSubset{
		{Addresses: b, Ports: []corev1.EndpointPort{metrics}},
		{Addresses: a, Ports: []corev1.EndpointPort{metrics}},
		{Addresses: a, Ports: []corev1.EndpointPort{http}},
		{Addresses: b, Ports: []corev1.EndpointPort{http}},
		{NotReadyAddresses: a, Ports: []corev1.EndpointPort{http}},
	})
	// Address a is not ready for http, as not ready wins, so the ports differ.
	if len(got) != 2 || got[0].Ports[0] != http || got[1].Ports[0] != metrics {
		t.Fatalf("repacked = %+v", got)
	}
	if len(got[0].Addresses) != 1 || got[0].Addresses[0].IP != b[0].IP || len(got[0].NotReadyAddresses) != 1 {
		t.Errorf("http = %+v", got[0])
	}
	if len(got[1].Addresses) != 2 || got[1].Addresses[0].IP != a[0].IP {
		t.Errorf("metrics = %+v", got[1])
	}
	joined := repack([]corev1.EndpointSubset{{Addresses: a, Ports: []corev1.EndpointPort{metrics}}, {Addresses: a, Ports: []corev1.EndpointPort{http}}})
	if len(joined) != 1 || len(joined[0].Ports) != 2 || joined[0].Ports[0] != http {
		t.Errorf("joined = %+v", joined)
	}
	if bare := repack([]corev1.EndpointSubset{{Addresses: a}}); len(bare) != 1 || bare[0].Ports != nil || len(bare[0].Addresses) != 1 {
		t.Errorf("without ports = %+v", bare)
	}
}

func TestTruncateKeepsAThousandReadyOnesFirst(t *testing.T) {
	for _, c := range []struct{ ready1, notReady1, ready2, notReady2, wantReady, wantNotReady int }{
		{400, 100, 400, 100, 800, 200},        // fits exactly
		{400, 300, 400, 100, 800, 200},        // the others are cut in proportion
		{900, 10, 600, 10, 1000, 0},           // too many ready ones: no others at all
		{0, 1500, 0, 1, 0, 1000},              // none ready
		{1000, 5, 0, 0, 1000, 0},              // no room for others
		{1, 1, 1, 1, 2, 2},                    // small
		{333, 333, 333, 333, 666, 1000 - 666}, // odd shares
	} {
		s := []corev1.EndpointSubset{
			{Addresses: addresses(0, c.ready1, "a"), NotReadyAddresses: addresses(10000, c.notReady1, "b")},
			{Addresses: addresses(20000, c.ready2, "c"), NotReadyAddresses: addresses(30000, c.notReady2, "d")},
		}
		cut := truncate(s)
		ready, not := len(s[0].Addresses)+len(s[1].Addresses), len(s[0].NotReadyAddresses)+len(s[1].NotReadyAddresses)
		if ready != c.wantReady || not != c.wantNotReady || cut != (c.ready1+c.ready2+c.notReady1+c.notReady2 > 1000) {
			t.Errorf("%+v: kept %d ready and %d others, cut %v", c, ready, not, cut)
		}
	}
}
