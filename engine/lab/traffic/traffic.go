package traffic

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	listers "k8s.io/client-go/listers/core/v1"

	"github.com/kconverge/kconverge/collect"
)

const (
	// MaxRate is the most connections a second from one node to one Service port at one
	// address.
	MaxRate = 200
	// underWay is how many connections of one node may be open at a time; others are
	// skipped, and that is told.
	underWay = 64
	// tellEvery is how often what was counted is told.
	tellEvery = time.Second
)

// Options configure Traffic.
type Options struct {
	// Client lists Services; required.
	Client kubernetes.Interface
	// Nodes are where connections are opened.
	Nodes []Node
	// Sink takes the events; required.
	Sink collect.Sink
	// Clock stamps them; the wall clock when nil. The rate is that of real time.
	Clock collect.Clock
	// While runs a node's part while the node is alive; nil runs it always.
	While func(ctx context.Context, node string, run func(context.Context) error) error
	// Rate is how many connections a second each node opens to each TCP port of each
	// Service, at each ClusterIP and at the NodePort of its own addresses; 0 for none.
	Rate int
}

// Traffic opens connections. SetRate and Rate are safe for concurrent use; Run is
// called once.
type Traffic struct {
	o       Options
	ports   ports
	mu      sync.Mutex
	rate    int
	changed chan struct{} // closed when the rate has changed
}

// New checks the options.
func New(o Options) (*Traffic, error) {
	if o.Client == nil || o.Sink == nil {
		return nil, errors.New("traffic: Options.Client and Options.Sink are required")
	}
	if o.Clock == nil {
		o.Clock = collect.SystemClock{}
	}
	if o.While == nil {
		o.While = func(ctx context.Context, _ string, run func(context.Context) error) error { return run(ctx) }
	}
	t := &Traffic{o: o, changed: make(chan struct{})}
	return t, t.SetRate(o.Rate)
}

// SetRate changes the rate.
func (t *Traffic) SetRate(n int) error {
	if n < 0 || n > MaxRate {
		return fmt.Errorf("traffic of %d connections a second: choose 0 to %d", n, MaxRate)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if n != t.rate {
		t.rate = n
		close(t.changed)
		t.changed = make(chan struct{})
	}
	return nil
}

// Rate is how many connections a second each node opens to each Service port.
func (t *Traffic) Rate() int {
	rate, _ := t.current()
	return rate
}

func (t *Traffic) current() (rate int, changed <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.rate, t.changed
}

// Run opens connections until ctx ends, and returns when all have ended.
func (t *Traffic) Run(ctx context.Context) error {
	factory := informers.NewSharedInformerFactory(t.o.Client, 0)
	lister := factory.Core().V1().Services().Lister()
	factory.StartWithContext(ctx)
	defer factory.Shutdown()
	if err := factory.WaitForCacheSyncWithContext(ctx).AsError(); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return fmt.Errorf("list the Services to connect to: %w", err)
	}
	var run errgroup.Group
	for _, n := range t.o.Nodes {
		run.Go(func() error {
			return t.o.While(ctx, n.Name(), func(ctx context.Context) error {
				t.from(ctx, n, lister)
				return nil
			})
		})
	}
	return run.Wait()
}

// from opens the connections of one node.
func (t *Traffic) from(ctx context.Context, n Node, services listers.ServiceLister) {
	counts := newTally(t.o.Clock.Now())
	room := make(chan struct{}, underWay)
	var wg sync.WaitGroup
	tell := time.NewTicker(tellEvery)
	defer tell.Stop()
	// Events of one source come in its order, so one goroutine emits them.
	failed := make(chan collect.Event, underWay)
	flush := func() {
		for _, e := range counts.take(n.Name(), t.o.Clock.Now()) {
			t.o.Sink.Emit(e)
		}
	}
	defer func() {
		go func() { wg.Wait(); close(failed) }()
		for e := range failed {
			t.o.Sink.Emit(e)
		}
		flush()
	}()
	for {
		rate, changed := t.current()
		var due <-chan time.Time
		var pace *time.Ticker
		var period time.Duration
		var next time.Time
		if rate > 0 {
			period = time.Second / time.Duration(rate)
			pace = time.NewTicker(period)
			next = t.o.Clock.Now().Add(period)
			due = pace.C
		}
		for same := true; same; {
			select {
			case <-ctx.Done():
				if pace != nil {
					pace.Stop()
				}
				return
			case <-changed:
				same = false
			case <-tell.C:
				flush()
			case e := <-failed:
				t.o.Sink.Emit(e)
			case <-due:
				// A ticker drops what nobody waited for.
				missed := max(0, int(t.o.Clock.Now().Sub(next)/period))
				next = next.Add(time.Duration(missed+1) * period)
				for _, to := range targets(services, n.Addresses()) {
					if missed > 0 {
						counts.add(to, func(c *count) { c.skipped += missed })
					}
					select {
					case room <- struct{}{}:
						wg.Go(func() {
							defer func() { <-room }()
							t.one(ctx, n, to, counts, failed)
						})
					default:
						counts.add(to, func(c *count) { c.skipped++ })
					}
				}
			}
		}
		if pace != nil {
			pace.Stop()
		}
	}
}

// one is one connection. One that the lab's end cuts off tells nothing.
func (t *Traffic) one(ctx context.Context, n Node, to target, counts *tally, failed chan<- collect.Event) {
	began := t.o.Clock.Now()
	uid, err := t.ask(ctx, n, to.address.String())
	now := t.o.Clock.Now()
	if ctx.Err() != nil {
		return
	}
	if err == nil {
		counts.add(to, func(c *count) {
			c.ok++
			c.slowest = max(c.slowest, now.Sub(began))
			c.answered[uid]++
		})
		return
	}
	counts.add(to, func(c *count) { c.failed++ })
	failed <- collect.Event{At: now, Source: collect.TrafficSource(n.Name()), Object: to.object(), Payload: &collect.ConnectionFailed{
		Node: n.Name(), Address: to.address, Began: began, Result: result(err),
	}}
}

// targets are what there is to connect to now from a node with those addresses.
func targets(services listers.ServiceLister, own []netip.Addr) (out []target) {
	all, err := services.List(labels.Everything())
	if err != nil {
		return nil // an indexer cannot fail
	}
	for _, s := range all {
		for _, ip := range s.Spec.ClusterIPs {
			addr, err := netip.ParseAddr(ip)
			if err != nil { // headless
				continue
			}
			add := func(addr netip.Addr, port int32) {
				out = append(out, target{s.Namespace, s.Name, netip.AddrPortFrom(addr, uint16(port))})
			}
			for _, p := range s.Spec.Ports {
				if p.Protocol != corev1.ProtocolTCP && p.Protocol != "" {
					continue
				}
				add(addr, p.Port)
				for _, a := range own {
					if p.NodePort != 0 && a.Is4() == addr.Is4() {
						add(a, p.NodePort)
					}
				}
			}
		}
	}
	return out
}
