package rulesync

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/kconverge/kconverge/collect"
)

// Syncer keeps one node's rules. Make it with New; Run is called once.
type Syncer struct {
	o      Options
	in     *inputs
	runner *runner
	table  Table
	// live is set once the initial lists are complete.
	live atomic.Bool

	emitMu sync.Mutex

	// behind is since when a change waits to be written, in nanoseconds; 0 when
	// none does.
	behind atomic.Int64
	health *health // nil where no packets flow

	// Of the goroutine that syncs.
	needFull bool
	lastFull time.Time
	cleanUDP bool // stale flows are to be ended after the next write
}

// New checks the options and returns a Syncer that Run starts.
func New(o Options) (*Syncer, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Syncer{o: o, in: newInputs(), table: o.Table, needFull: true}
	s.runner = newRunner(o.Clock, o.MinSyncPeriod, o.RetryPeriod, o.FullSyncPeriod, s.sync, func(left time.Duration) {
		s.step(collect.ObjectKey{}, 0, &collect.SyncStep{Step: "waiting", Took: left, Pending: s.in.count()})
	})
	return s, nil
}

// Run keeps the rules until ctx ends, and returns nil then. Nothing is written
// before the initial lists of Services and EndpointSlices are complete. The
// rules stay when Run returns. An error means that it cannot begin.
func (s *Syncer) Run(ctx context.Context) error {
	if s.table == nil {
		t, err := newKernelTable(s.o)
		if err != nil {
			return fmt.Errorf("rule sync of %s: %w", s.o.Node.Name, err)
		}
		s.table = t
	}
	defer func() { _ = s.table.Close() }()
	if s.o.NetNS > 0 && s.o.Table == nil {
		s.health = newHealth(func(a netip.AddrPort) (net.Listener, error) { return listenIn(s.o.NetNS, a) }, s.healthy)
		defer s.health.close()
	}
	services, epSlices := s.o.Services, s.o.Slices
	if s.o.Client != nil && (services == nil || epSlices == nil) {
		// Ended and waited for with Run: ctx may outlive it.
		ctx, cancel := context.WithCancel(ctx)
		factory := informers.NewSharedInformerFactory(s.o.Client, 0)
		services, epSlices = factory.Core().V1().Services().Informer(), factory.Discovery().V1().EndpointSlices().Informer()
		defer func() {
			cancel()
			factory.Shutdown()
		}()
		return s.run(ctx, services, epSlices, func() { factory.StartWithContext(ctx) })
	}
	return s.run(ctx, services, epSlices, func() {})
}

func (s *Syncer) run(ctx context.Context, services, epSlices cache.SharedIndexInformer, start func()) error {
	var synced []cache.DoneChecker
	for _, w := range []struct {
		informer cache.SharedIndexInformer
		handler  cache.ResourceEventHandlerFuncs
	}{
		{services, cache.ResourceEventHandlerFuncs{
			AddFunc:    func(obj any) { s.onService(obj, false) },
			UpdateFunc: func(_, obj any) { s.onService(obj, false) },
			DeleteFunc: func(obj any) { s.onService(obj, true) },
		}},
		{epSlices, cache.ResourceEventHandlerFuncs{
			AddFunc:    func(obj any) { s.onSlice(obj, false) },
			UpdateFunc: func(_, obj any) { s.onSlice(obj, false) },
			DeleteFunc: func(obj any) { s.onSlice(obj, true) },
		}},
	} {
		reg, err := w.informer.AddEventHandler(w.handler)
		if err != nil {
			return fmt.Errorf("rule sync of %s: watch: %w", s.o.Node.Name, err)
		}
		defer func() { _ = w.informer.RemoveEventHandler(reg) }()
		synced = append(synced, reg.HasSyncedChecker())
	}
	start()
	if !cache.WaitFor(ctx, "", synced...) {
		return nil
	}
	s.live.Store(true)
	s.runner.run(ctx)
	return nil
}

func (s *Syncer) onService(obj any, gone bool) {
	name, svc, raw := service(obj)
	if raw == nil {
		return
	}
	if gone {
		svc = nil
	}
	changed, pending := s.in.setService(name, svc)
	if changed {
		s.received(name, raw.ResourceVersion, pending, "Service "+raw.Name)
	}
}

func (s *Syncer) onSlice(obj any, gone bool) {
	name, sl, raw := endpointSlice(obj)
	if raw == nil {
		return
	}
	if gone {
		sl = nil
	}
	svc, changed, pending := s.in.setSlice(name, sl)
	if changed {
		s.received(svc, raw.ResourceVersion, pending, "EndpointSlice "+raw.Name)
	}
}

// received asks for a sync, unless the initial lists are still arriving.
func (s *Syncer) received(svc types.NamespacedName, resourceVersion string, pending int, what string) {
	if !s.live.Load() {
		return
	}
	// Resource versions are opaque by contract; where one is no number the
	// event goes without.
	rv, err := strconv.ParseUint(resourceVersion, 10, 64)
	if err != nil {
		rv = 0
	}
	s.behind.CompareAndSwap(0, s.o.Clock.Now().UnixNano())
	s.step(serviceKey(svc), rv, &collect.SyncStep{Step: "received", Pending: pending, Detail: what})
	s.runner.request()
}

// sync is one run of kube-proxy's syncProxyRules.
func (s *Syncer) sync(ctx context.Context) error {
	start := s.o.Clock.Now()
	full := s.needFull || start.Sub(s.lastFull) > s.o.FullSyncPeriod
	s.step(collect.ObjectKey{}, 0, &collect.SyncStep{Step: "started", Full: full, Pending: s.in.count()})
	res, n, err := s.write(ctx, full, start)
	took := s.o.Clock.Since(start)
	if err != nil && ctx.Err() != nil {
		return err // it ends with its node, which is no failure of the rules
	}
	if err != nil {
		// What changed is forgotten, so a partial sync is not possible.
		s.needFull = true
		s.step(collect.ObjectKey{}, 0, &collect.SyncStep{Step: "failed", Full: full, Took: took, Detail: err.Error()})
		return err
	}
	s.needFull = false
	s.in.whenCounted(func(pending int) {
		if pending == 0 {
			s.behind.Store(0)
		} else {
			s.behind.Store(start.UnixNano()) // they came after it
		}
	})
	if full {
		s.lastFull = s.o.Clock.Now()
	}
	detail := fmt.Sprintf("%d Services", n)
	if n == 1 {
		detail = "1 Service"
	}
	for _, note := range []string{res.Note, s.answerHealth(), s.endFlows()} {
		if note != "" {
			detail += ", " + note
		}
	}
	s.step(collect.ObjectKey{}, 0, &collect.SyncStep{Step: "committed", Full: full, Generation: res.Generation, Pending: n, Took: took, Detail: detail})
	return nil
}

// write computes and writes what changed, or everything, and returns for how
// many Services.
func (s *Syncer) write(ctx context.Context, full bool, start time.Time) (Result, int, error) {
	ch := Change{Full: full, Services: map[types.NamespacedName][]Port{}, Now: start}
	s.cleanUDP = s.in.takeUDP() || s.cleanUDP
	for name, in := range s.in.take(full) {
		ports := portsOf(name, in.service, in.slices, s.o.Node)
		ch.Services[name] = slices.DeleteFunc(ports, func(p Port) bool { return !slices.Contains(s.o.Families, p.Family) })
	}
	// After the changes were taken: what arrives during a slow sync is for the
	// next one.
	if s.o.Before != nil {
		if err := s.o.Before(ctx, full); err != nil {
			return Result{}, 0, err
		}
	}
	res, err := s.table.Write(ctx, ch)
	return res, len(ch.Services), err
}

// healthy reports that no change has waited for too long: twice the period after
// which a failed sync is tried again, as kube-proxy's health says
// (pkg/proxy/healthcheck/proxy_health.go).
func (s *Syncer) healthy() bool {
	since := s.behind.Load()
	return since == 0 || s.o.Clock.Since(time.Unix(0, since)) <= 2*s.o.RetryPeriod
}

// answerHealth brings the health check ports up to date, and says what failed.
func (s *Syncer) answerHealth() string {
	if s.health == nil {
		return ""
	}
	if err := s.health.sync(s.in.all(), s.o.Node, s.o.Families); err != nil {
		return err.Error()
	}
	return ""
}

// endFlows ends the UDP flows to endpoints that are gone, when endpoints of UDP
// ports have changed, and says what came of it. Like kube-proxy it does not fail
// the sync: the next change tries again.
func (s *Syncer) endFlows() string {
	if !s.cleanUDP {
		return ""
	}
	s.cleanUDP = false
	if s.o.NetNS <= 0 || s.o.Table != nil {
		return "" // no packets
	}
	n, err := endFlows(s.o.NetNS, s.o.Families, udpFlows(s.in.all(), s.o.Node))
	switch {
	case err != nil:
		s.cleanUDP = true
		return err.Error()
	case n > 0:
		return fmt.Sprintf("%d stale UDP flows ended", n)
	}
	return ""
}

// step emits one step. Watches and syncs run side by side; the lock keeps their
// steps in the order of their stamps.
func (s *Syncer) step(obj collect.ObjectKey, rv uint64, p *collect.SyncStep) {
	p.Node = s.o.Node.Name
	s.emitMu.Lock()
	defer s.emitMu.Unlock()
	s.o.Sink.Emit(collect.Event{At: s.o.Clock.Now(), Source: collect.RuleSyncSource(p.Node), Object: obj, ResourceVersion: rv, Payload: p})
}

func serviceKey(n types.NamespacedName) collect.ObjectKey {
	return collect.ObjectKey{Kind: "Service", Namespace: n.Namespace, Name: n.Name}
}
