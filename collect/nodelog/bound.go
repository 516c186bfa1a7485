package nodelog

import (
	"time"

	"github.com/kconverge/kconverge/collect"
)

// driftPPM is how fast two clocks may drift apart, in millionths: what the
// Linux kernel assumes of a free-running clock (MAXFREQ in linux/timex.h, by
// which adjtimex's maxerror grows).
const driftPPM = 500

func drift(d time.Duration) time.Duration { return max(d, 0) * driftPPM / 1_000_000 }

// oneClock is how two programs on one kernel stand to each other.
const oneClock = "one clock"

// bound bounds the offset of a node's clock: the viewer's time minus the node's.
//
// A line cannot be read before it was written: receipt minus its time is an
// upper bound. An effect cannot come before its cause: the viewer's time of the
// cause minus the node's time of the effect is a lower one. Both grow looser as
// time passes, by the drift. When both clocks say that they are synchronised,
// the offset is zero within the sum of their errors; when both are one clock,
// it is zero.
//
// It is not safe for concurrent use.
type bound struct {
	hi, lo       time.Duration
	hiAt, loAt   time.Time // on the viewer's clock
	hasHi, hasLo bool

	node, viewer collect.NodeClock
}

// log takes a line's delay: its receipt by the viewer's clock minus the time in
// it. at is the receipt.
func (b *bound) log(delay time.Duration, at time.Time) {
	if !b.hasHi || delay < b.hi+drift(at.Sub(b.hiAt)) {
		b.hi, b.hiAt, b.hasHi = delay, at, true
	}
	if lo, ok := b.lower(at); ok && lo > b.hi {
		b.hasLo = false // the node's clock went ahead: it was set
	}
}

// cause takes a lower bound that a line gave. delay is that line's own.
func (b *bound) cause(least, delay time.Duration, at time.Time) {
	if lo, ok := b.lower(at); !ok || least > lo {
		b.lo, b.loAt, b.hasLo = least, at, true
	}
	if b.hasHi && b.lo > b.hi+drift(at.Sub(b.hiAt)) {
		b.hi, b.hiAt = delay, at // the node's clock went back: it was set
	}
}

// reset forgets what earlier lines told, because the node's clock was set.
func (b *bound) reset() { b.hasHi, b.hasLo = false, false }

func (b *bound) lower(at time.Time) (time.Duration, bool) {
	return b.lo - drift(at.Sub(b.loAt)), b.hasLo
}

// estimate says what the offset is at a time of the viewer's clock.
func (b *bound) estimate(at time.Time) collect.ClockBound {
	hi := b.hi + drift(at.Sub(b.hiAt))
	if b.node.Boot != "" && b.node.Boot == b.viewer.Boot {
		return collect.ClockBound{How: oneClock}
	}
	if b.node.Synchronised && b.viewer.Synchronised {
		err := b.node.MaxError + b.viewer.MaxError
		// A line that is read before it was written refutes one of them.
		if !b.hasHi || hi >= -err {
			return collect.ClockBound{Error: err, How: "synchronised"}
		}
	}
	if !b.hasHi {
		return collect.ClockBound{OneSided: true, How: "nothing"}
	}
	if lo, ok := b.lower(at); ok {
		mid := lo + (hi-lo)/2
		return collect.ClockBound{Offset: mid, Error: hi - mid, How: "causes and logs"}
	}
	return collect.ClockBound{Offset: hi, OneSided: true, How: "logs"}
}
