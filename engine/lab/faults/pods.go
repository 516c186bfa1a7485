package faults

import (
	"fmt"
	"time"
)

// longest adds up nothing: it is the longest of the durations that a fault has for a
// pod, 0 when none is meant.
func (f *Faults) longest(fault, namespace, name string) (d time.Duration) {
	for _, t := range f.of(fault) {
		if t.target.pod(namespace, name) {
			d = max(d, t.amount.d)
		}
	}
	return d
}

// Slower is how much longer a step of a pod's start takes: "start" until its containers
// run, "listen" until its programs listen.
func (f *Faults) Slower(namespace, name, step string) time.Duration {
	return f.longest(step+"-delay", namespace, name)
}

// ProbePeriod is the period of a pod's probes whose own is given.
func (f *Faults) ProbePeriod(namespace, name string, own time.Duration) time.Duration {
	if d := f.longest("probe-period", namespace, name); d > 0 {
		return d
	}
	return own
}

// ProbeFails is why a readiness probe of a pod fails, nil when it is to be run.
func (f *Faults) ProbeFails(namespace, name string) error {
	for _, t := range f.of("probe-fail") {
		if !t.target.pod(namespace, name) {
			continue
		}
		failing := false
		if t.amount.d > 0 {
			failing = (f.o.Clock.Now().Sub(t.Since)/t.amount.d)%2 == 0
		} else {
			failing = t.strikes()
		}
		if failing {
			return fmt.Errorf("HTTP probe failed with statuscode: 503 (%w %s)", ErrInjected, t.Setting)
		}
	}
	return nil
}

// Stop gives how long a pod's preStop hook takes and then its program, in the place of
// its own.
func (f *Faults) Stop(namespace, name string, hook, own time.Duration) (time.Duration, time.Duration) {
	for _, t := range f.of("stop-early") {
		if t.target.pod(namespace, name) {
			return 0, 0
		}
	}
	if d := f.longest("prestop", namespace, name); d > 0 {
		hook = d
	}
	return hook, own
}
