package lab

import (
	"context"
	"sync"
	"time"

	"github.com/kconverge/kconverge/engine/lab/faults"
	"github.com/kconverge/kconverge/engine/lab/kubelet"
)

// SetFaults sets or clears faults, each as NAME=VALUE (faults.Parse); they are in force
// when it returns. When one of them is wrong nothing is changed, and the error says what
// would be right. by is who asks, for the axis: "screen", "scenario".
func (l *Lab) SetFaults(ctx context.Context, by string, texts ...string) error {
	settings, err := faults.ParseAll(texts)
	if err != nil {
		return err
	}
	if err := l.WaitReady(ctx); err != nil {
		return err
	}
	return l.faults.Set(ctx, l.own, settings, by)
}

// ClearFaults clears all faults.
func (l *Lab) ClearFaults(ctx context.Context, by string) error {
	var texts []string
	for _, a := range l.faults.List() {
		a.Amount = "off"
		texts = append(texts, a.String())
	}
	return l.SetFaults(ctx, by, texts...)
}

// Faults are those that are in force, by name and target.
func (l *Lab) Faults() []faults.Active { return l.faults.List() }

// podHooks lets faults act in the kubelet of a node.
func (l *Lab) podHooks(node string) kubelet.Hooks {
	f := l.faults
	return kubelet.Hooks{
		Slower: func(p kubelet.PodRef, s kubelet.Step) time.Duration { return f.Slower(p.Namespace, p.Name, string(s)) },
		ProbePeriod: func(p kubelet.PodRef, own time.Duration) time.Duration {
			return f.ProbePeriod(p.Namespace, p.Name, own)
		},
		ProbeFails: func(p kubelet.PodRef) error { return f.ProbeFails(p.Namespace, p.Name) },
		Stop: func(p kubelet.PodRef, hook, own time.Duration) (time.Duration, time.Duration) {
			return f.Stop(p.Namespace, p.Name, hook, own)
		},
		ClockOff: func() time.Duration { return f.ClockOff(node) },
	}
}

// whileAlive lets something of a node run while the node is alive.
func (l *Lab) whileAlive(node string, run func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error { return l.faults.WhileAlive(ctx, node, run) }
}

// faultParts are what makes faults happen beside the hooks.
func (l *Lab) faultParts(clients *clients, base *ground, feeds map[string]*proxyFeed) []part {
	return []part{
		{"faults", func(ctx context.Context) error { return l.faults.Follow(ctx, clients.own) }},
		{"faults of watches", func(ctx context.Context) error { return l.separateWatches(ctx, clients, feeds) }},
		{"faults of nodes", func(ctx context.Context) error { return l.cutNodes(ctx, base) }},
	}
}

// separateWatches gives the proxies that faults mean watches of their own.
func (l *Lab) separateWatches(ctx context.Context, clients *clients, feeds map[string]*proxyFeed) error {
	var running sync.WaitGroup
	defer running.Wait()
	done := map[string]bool{}
	return l.eachChange(ctx, func() error {
		for node, feed := range feeds {
			if done[node] || !l.faults.WantsOwnWatch(node) {
				continue
			}
			client, err := clients.proxyOf(node)
			if err != nil {
				return err
			}
			if feed.separate(ctx, client, &running) {
				done[node] = true
				l.faults.Joined(node)
			}
		}
		return nil
	})
}

// cutNodes takes dead nodes off the network.
func (l *Lab) cutNodes(ctx context.Context, base *ground) error {
	cut := map[string]bool{}
	return l.eachChange(ctx, func() error {
		for _, h := range base.hosts {
			dead := l.faults.Dead(h.Name())
			if dead == cut[h.Name()] {
				continue
			}
			if err := h.Cut(dead); err != nil {
				return err
			}
			cut[h.Name()] = dead
		}
		return nil
	})
}

// eachChange does something now and whenever other faults are in force, until ctx ends.
func (l *Lab) eachChange(ctx context.Context, do func() error) error {
	for {
		changed := l.faults.Changed()
		if err := do(); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		}
	}
}
