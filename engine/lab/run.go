package lab

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"golang.org/x/sync/errgroup"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/collect/kube"
	"github.com/kconverge/kconverge/collect/nodelog"
	"github.com/kconverge/kconverge/engine/desired"
	"github.com/kconverge/kconverge/engine/lab/kubelet"
	"github.com/kconverge/kconverge/engine/lab/nodes"
	"github.com/kconverge/kconverge/engine/rulesync"
)

const (
	sourceAPIServer collect.SourceID = "lab/apiserver"
	sourceNodes     collect.SourceID = "lab/nodes"

	// vouchEvery is how often a silent watch, and heartbeatEvery how often a
	// node's rules, are checked: in one process that costs next to nothing,
	// and the watermark follows the present closely.
	vouchEvery     = time.Second
	heartbeatEvery = time.Second
	// stopLimit is how long the control plane may take to stop.
	stopLimit = 5 * time.Second
)

// Run implements collect.Source. It starts the control plane and the nodes side by
// side, then everything that works on them; when ctx ends, or when a part
// cannot go on, it stops the parts first and what they stand on last.
func (l *Lab) Run(ctx context.Context, sink collect.Sink) (err error) {
	defer l.once.Do(func() { l.err = err; close(l.failed) })
	for _, s := range l.o.Faults {
		if err := l.faults.Check(s); err != nil {
			return err
		}
	}
	var (
		plane controlPlane
		base  *ground
	)
	defer func() {
		if plane != nil {
			stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopLimit)
			defer cancel()
			err = errors.Join(err, plane.Stop(stop))
		}
		if base != nil {
			err = errors.Join(err, base.close())
		}
	}()
	// Ended first: no fault keeps anything from stopping.
	l.faults.Begin(sink)
	defer l.faults.End()
	start, startCtx := errgroup.WithContext(ctx)
	start.Go(l.step(sink, sourceAPIServer, func() (err error) {
		plane, err = l.startPlane(startCtx)
		return err
	}))
	start.Go(l.step(sink, sourceNodes, func() (err error) {
		base, err = l.startGround(startCtx, func(err error) {
			// A port that cannot be opened does not end the lab.
			l.say(sink, sourceNodes, collect.SourceBroken, err.Error())
		})
		return err
	}))
	if err := start.Wait(); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	watching := newWatching(sink, append(l.Session().Needs, rulesSources(l.names)...))
	parts, registered, err := l.parts(plane, base, watching)
	if err != nil {
		return err
	}
	run, runCtx := errgroup.WithContext(ctx)
	for _, p := range parts {
		run.Go(func() error {
			if err := p.run(runCtx); err != nil && runCtx.Err() == nil {
				return fmt.Errorf("%s: %w", p.name, err)
			}
			return nil
		})
	}
	run.Go(func() error {
		// Nobody is let in before everything is watched, since what happened
		// earlier would be a baseline without lags, and before every node is
		// there, since the first pods would all go to the first node.
		for _, c := range append(registered, watching.all) {
			select {
			case <-c:
			case <-runCtx.Done():
				return nil
			}
		}
		if err := plane.admit(runCtx, l.own, l.names); err != nil {
			if runCtx.Err() != nil {
				return nil
			}
			return err
		}
		// From here on, so that no fault keeps the cluster from coming up.
		if err := l.faults.Change(l.o.Faults, "flag"); err != nil {
			return err
		}
		if err := l.faults.Publish(runCtx, l.own); err != nil {
			if runCtx.Err() != nil {
				return nil
			}
			return err
		}
		if err := l.publish(plane, sink); err != nil {
			return err
		}
		if !l.o.Seed {
			return nil
		}
		if err := seed(runCtx, l.own); err != nil && runCtx.Err() == nil {
			return err
		}
		return nil
	})
	return run.Wait()
}

// text is what an error says, "" for none.
func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// step wraps a step of the start so that it shows as a source of its own.
func (l *Lab) step(sink collect.Sink, id collect.SourceID, do func() error) func() error {
	return func() error {
		l.say(sink, id, collect.SourceStarting, "")
		if err := do(); err != nil {
			l.say(sink, id, collect.SourceStopped, err.Error())
			return err
		}
		l.say(sink, id, collect.SourceSynced, "")
		return nil
	}
}

func (l *Lab) say(sink collect.Sink, id collect.SourceID, s collect.SourceStateName, detail string) {
	sink.Emit(collect.Event{At: l.o.Clock.Now(), Source: id, Payload: &collect.SourceState{State: s, Detail: detail}})
}

// publish lets others in: the kubeconfig, the screen's actions.
func (l *Lab) publish(plane controlPlane, sink collect.Sink) error {
	l.sink = sink
	if l.o.Kubeconfig != nil {
		content, err := plane.Kubeconfig()
		if err != nil {
			return err
		}
		if err := l.o.Kubeconfig(content); err != nil {
			return fmt.Errorf("write the kubeconfig: %w", err)
		}
	}
	l.once.Do(func() { close(l.ready) })
	return nil
}

// zones are those that the nodes stand in, by turns, so that traffic
// distribution has something to choose from.
var zones = [...]string{"zone-a", "zone-b", "zone-c"}

// zoneOf is the zone of the i-th node.
func zoneOf(i int) string { return zones[i%len(zones)] }

// part is one thing that runs until its context ends.
type part struct {
	name string
	run  func(context.Context) error
}

// parts makes everything that works on the API server and the nodes. The
// readers come first, so that they see the others' first steps. Each channel of
// registered is closed when a node is there.
func (l *Lab) parts(plane controlPlane, base *ground, sink collect.Sink) (parts []part, registered []<-chan struct{}, err error) {
	config := plane.Config()
	clients, err := newClients(config)
	if err != nil {
		return nil, nil, err
	}
	l.client, l.own, l.net = clients.screen, clients.own, base.kernel
	watch, err := kube.New(kube.Options{Config: config, Clock: l.o.Clock, VouchEvery: vouchEvery, UserAgent: "kconverge/" + l.o.Tool})
	if err != nil {
		return nil, nil, err
	}
	l.vouch = append(l.vouch, watch)
	causes := nodelog.NewCauses()
	seen := collect.SinkFunc(func(e collect.Event) { causes.Emit(e); sink.Emit(e) })
	parts = []part{{"watch", func(ctx context.Context) error { return watch.Run(ctx, seen) }}}
	feed := newRulesFeed(clients.proxy)
	parts = append(parts, part{"rule syncs' watch", feed.run})
	l.faults.Compete(clients.own)
	syncs, feeds := make([]rulesync.Options, len(base.hosts)), map[string]*proxyFeed{}
	for i, n := range base.hosts {
		watch := newProxyFeed(feed)
		feeds[n.Name()] = watch
		syncs[i] = rulesync.Options{
			Node: desired.NodeRef{Name: n.Name(), Zone: zoneOf(i), Addresses: n.Addresses()}, Families: l.families(),
			ClusterCIDRs: []netip.Prefix{nodes.DefaultPodCIDR, nodes.PodCIDRv6},
			ServiceCIDRs: []netip.Prefix{nodes.DefaultServiceCIDR, nodes.ServiceCIDRv6},
			Services:     watch.services, Slices: watch.slices, Sink: sink,
			Before: l.faults.BeforeSync(n.Name()),
		}
		rules := l.rulesOf(base, n, &syncs[i])
		l.vouch = append(l.vouch, rules)
		parts = append(parts, part{rules.Name(), func(ctx context.Context) error { return rules.Run(ctx, l.byNodesClock(n.Name(), causes, sink)) }})
	}
	controllers, err := plane.parts(clients, sink)
	if err != nil {
		return nil, nil, err
	}
	parts = append(parts, controllers...)
	shared := kubelet.NewShared(clients.kubelet)
	parts = append(parts, part{"kubelets' watch", shared.Run})
	for i, n := range base.hosts {
		agent := kubelet.New(kubelet.Options{
			Client: clients.kubelet, Shared: shared, Node: n.Name(), Zone: zoneOf(i), Addresses: n.Addresses(), PodCIDRs: n.PodCIDRs(), Sandbox: n, Hooks: l.podHooks(n.Name()),
		})
		sync := func(ctx context.Context) error {
			s, err := rulesync.New(syncs[i])
			if err != nil {
				return err
			}
			return s.Run(ctx)
		}
		registered = append(registered, agent.Registered())
		parts = append(parts, part{"kubelet of " + n.Name(), l.whileAlive(n.Name(), agent.Run)}, part{"rule sync of " + n.Name(), l.whileAlive(n.Name(), sync)})
	}
	if p, err := l.trafficPart(base, sink); err != nil {
		return nil, nil, err
	} else if p != nil {
		parts = append(parts, *p)
	}
	parts = append(parts, l.faultParts(clients, base, feeds)...)
	parts = append(parts, part{"target ports", func(ctx context.Context) error { return followTargetPorts(ctx, clients.own, base.ports) }})
	return parts, registered, nil
}

// zap is the logger for etcd.
func (l *Lab) zap() *zap.Logger {
	return zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig()), zapcore.AddSync(l.o.Logs), zap.WarnLevel))
}
