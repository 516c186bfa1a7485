package kubelet

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/klog/v2"
)

// serve runs the containers until they have ended for good: because the pod is
// deleted, or because they all ended and none is to be started again. A pod that
// is being deleted keeps its listeners and its readiness probes until its
// containers have ended. It returns errGone when the object was deleted without
// grace.
func (p *pod) serve(ctx context.Context) error {
	probing, stop := context.WithCancel(ctx)
	var probes sync.WaitGroup
	defer probes.Wait()
	defer stop()
	p.probing, p.results = probing, make(chan probeResult)
	p.startProbe = func(pr *probe) { probes.Go(func() { pr.run(pr.ctx) }) }
	t := p.clock.NewTimer(0)
	defer t.Stop()
	var retry <-chan time.Time
	for {
		now := p.clock.Now()
		p.ending.update(p, now)
		p.step(now)
		switch gone := p.ending.gone; {
		case p.ending.over(p, now) && gone:
			return errGone
		case p.ending.over(p, now):
			return nil
		case !p.ending.began() && p.completed():
			return nil
		}
		retry = nil
		if p.reporting || p.ending.began() {
			if err := p.write(ctx); err != nil && !errors.Is(err, errGone) && ctx.Err() == nil {
				obj, _ := p.object()
				klog.FromContext(ctx).Error(err, "Will write the status of the pod again", "pod", obj.Namespace+"/"+obj.Name)
				retry = p.clock.After(apiRetry)
			}
		}
		var due <-chan time.Time
		if at := p.nextDue(); !at.IsZero() {
			t.Reset(max(0, at.Sub(p.clock.Now())))
			due = t.C()
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-due:
		case r := <-p.results:
			p.take(r)
		case <-p.kick:
		case <-retry:
		}
	}
}

// step does what is due: one step of each container, so that what each step
// makes of the pod is reported.
func (p *pod) step(now time.Time) {
	for i := range p.containers {
		c := &p.containers[i]
		if c.next != nil && !now.Before(c.due) {
			c.next(now)
		}
	}
	if at := p.listenDue(); !at.IsZero() && !now.Before(at) {
		p.relisten()
	}
}

// nextDue is when something happens by itself; zero for never.
func (p *pod) nextDue() time.Time {
	at := p.listenDue()
	sooner := func(t time.Time) {
		if !t.IsZero() && (at.IsZero() || t.Before(at)) {
			at = t
		}
	}
	for i := range p.containers {
		sooner(p.containers[i].due)
	}
	sooner(p.ending.at)
	return at
}

// completed reports that every container ended and none is to be started again.
func (p *pod) completed() bool {
	for i := range p.containers {
		if c := &p.containers[i]; c.seen != terminated || c.next != nil {
			return false
		}
	}
	return true
}

// unnoticed is how long it takes until the kubelet notices what it started.
func (p *pod) unnoticed() time.Duration {
	if p.adopted {
		return 0
	}
	return p.k.o.NoticeDelay.pick(string(p.uid), "notice")
}
