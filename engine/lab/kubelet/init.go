package kubelet

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
)

// errInitFailed: an init container failed and is not to be tried again.
var errInitFailed = errors.New("an init container of the pod failed")

// initialize runs the init containers, one after the other. One that fails is
// tried again with back-off, unless the restart policy is Never: then the pod
// has failed.
func (p *pod) initialize(ctx context.Context) error {
	for i := range p.inits {
		c := &p.inits[i]
		if err := p.pull(ctx, c.spec); err != nil {
			return err
		}
		for {
			if err := p.runInit(ctx, c); err != nil {
				return err
			}
			if c.end.ExitCode == 0 {
				break
			}
			if !p.restarts(c) {
				return errInitFailed
			}
			if err := p.waitInit(ctx, c); err != nil {
				return err
			}
		}
	}
	if len(p.inits) > 0 && !p.initialized {
		p.initialized = true
		p.report(ctx)
	}
	p.initialized = true
	return nil
}

// runInit is one run of an init container.
func (p *pod) runInit(ctx context.Context, c *container) error {
	p.event(c.spec, corev1.EventTypeNormal, "Created", "Container created")
	if err := p.sleep(ctx, p.k.o.StartDelay.pick(string(p.uid), fmt.Sprintf("start %s %d", c.spec.Name, c.run))); err != nil {
		return err
	}
	p.begin(c, p.clock.Now())
	p.event(c.spec, corev1.EventTypeNormal, "Started", "Container started")
	c.see()
	c.seen, c.reason, c.message = running, "", ""
	if c.program.after > 0 {
		p.report(ctx)
	}
	if err := p.sleep(ctx, c.program.after); err != nil {
		return err
	}
	p.exit(c, p.clock.Now(), c.program.code)
	if err := p.sleep(ctx, p.noticeDelay(c)); err != nil {
		return err
	}
	c.see()
	c.seen = terminated
	p.report(ctx)
	return nil
}

// waitInit is the back-off after a failure.
func (p *pod) waitInit(ctx context.Context, c *container) error {
	if left := c.ended.Add(c.backOff.wait(c.ended)).Sub(p.clock.Now()); left > 0 {
		p.backsOff(c)
		p.report(ctx)
		if err := p.sleep(ctx, left); err != nil {
			return err
		}
	}
	c.backOff.next(c.ended, p.clock.Now())
	return nil
}

// report writes the status; should that fail, the next write carries it.
func (p *pod) report(ctx context.Context) {
	if err := p.write(ctx); err != nil && !errors.Is(err, errGone) && ctx.Err() == nil {
		obj, _ := p.object()
		klog.FromContext(ctx).Error(err, "The next status of the pod will carry what this one could not", "pod", obj.Namespace+"/"+obj.Name)
	}
}
