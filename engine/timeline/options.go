package timeline

import "time"

// Budgets are the ages from which on a difference counts as stalled.
type Budgets struct {
	Slices, Rules time.Duration
}

// Options are the Model's settings; zero values mean the defaults named.
type Options struct {
	// Budgets: 5 s for slices, 10 s for rules.
	Budgets Budgets
	// ReorderWindow is how long an event waits for others that happened
	// before it: 30 ms.
	ReorderWindow time.Duration
	// LogWindow takes its place as soon as a node's rules come through a log,
	// which takes longer than a watch: 300 ms.
	LogWindow time.Duration
	// LookBack bounds how much earlier than the step that wants it a change
	// of a node's rules may have been observed and still count as its
	// arrival: 250 ms. Such arrivals have a negative time from the step; they
	// come about because a watch and a kernel have no mutual order.
	LookBack time.Duration
	// Retention is how long closed things are kept: 30 min.
	Retention time.Duration
}

func (o Options) withDefaults() Options {
	def := func(d *time.Duration, v time.Duration) {
		if *d <= 0 {
			*d = v
		}
	}
	def(&o.Budgets.Slices, 5*time.Second)
	def(&o.Budgets.Rules, 10*time.Second)
	def(&o.ReorderWindow, 30*time.Millisecond)
	def(&o.LogWindow, 300*time.Millisecond)
	def(&o.LookBack, 250*time.Millisecond)
	def(&o.Retention, 30*time.Minute)
	return o
}
