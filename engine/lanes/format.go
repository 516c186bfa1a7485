package lanes

import (
	"fmt"
	"strconv"
	"time"

	"github.com/kconverge/kconverge/engine/timeline"
)

// Minus is the sign of removals and of negative numbers.
const Minus = "−"

// Duration writes a duration for people, with a space before the unit: "0.3 ms",
// "9 ms", "0.98 s", "12.4 s", "3m41s", "2h05m", "3d04h".
func Duration(d time.Duration) string { return duration(d, " ") }

// TightDuration is Duration without the space, for texts on a lane: "0.98s".
func TightDuration(d time.Duration) string { return duration(d, "") }

func duration(d time.Duration, sp string) string {
	sign := ""
	if d < 0 {
		sign, d = Minus, -d
	}
	switch {
	case d == 0:
		return "0" + sp + "ms"
	case d < time.Millisecond:
		return sign + strconv.FormatFloat(float64(max(d/(100*time.Microsecond), 1))/10, 'f', 1, 64) + sp + "ms"
	case d < 100*time.Millisecond-500*time.Microsecond:
		return sign + strconv.FormatInt(d.Round(time.Millisecond).Milliseconds(), 10) + sp + "ms"
	case d < 10*time.Second-5*time.Millisecond:
		return sign + strconv.FormatFloat(d.Seconds(), 'f', 2, 64) + sp + "s"
	case d < time.Minute-50*time.Millisecond:
		return sign + strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + sp + "s"
	}
	d = d.Round(time.Second)
	switch {
	case d < time.Hour:
		return fmt.Sprintf("%s%dm%02ds", sign, d/time.Minute, d%time.Minute/time.Second)
	case d < 24*time.Hour:
		return fmt.Sprintf("%s%dh%02dm", sign, d/time.Hour, d%time.Hour/time.Minute)
	}
	return fmt.Sprintf("%s%dd%02dh", sign, d/(24*time.Hour), d%(24*time.Hour)/time.Hour)
}

// Age is Duration with one digit after the point, for ages that keep growing:
// "2.6 s".
func Age(d time.Duration) string {
	if d >= 100*time.Millisecond && d < time.Minute {
		return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + " s"
	}
	return Duration(d)
}

// ErrorBound writes how far a lag may be off: "±0.2 ms", "±1 s".
func ErrorBound(d time.Duration) string {
	if d < 10*time.Millisecond {
		return "±" + strconv.FormatFloat(float64((d+50*time.Microsecond)/(100*time.Microsecond))/10, 'f', -1, 64) + " ms"
	}
	return "±" + Duration(d)
}

// looseFrom is how long the interval of an arrival must be to be worth a word.
const looseFrom = 5 * time.Millisecond

// Loose reports that an arrival is known as an interval only: what is told of it is
// the most that it can be.
func Loose(h *timeline.Hop) bool {
	return h.Status == timeline.StatusArrived && h.Width() >= looseFrom
}

// AtMost writes how long something took that ended with the hop.
func AtMost(h *timeline.Hop, d time.Duration) string {
	if Loose(h) {
		return "≤" + Duration(d)
	}
	return Duration(d)
}

// HopError writes how far a hop's time may be off: to both sides, or, where an
// interval is longer than that, how much earlier it may have been.
func HopError(h *timeline.Hop) string {
	if w := h.Width(); Loose(h) && w > h.Error {
		return Minus + Duration(w)
	}
	return ErrorBound(h.Error)
}

// SpanOf writes a round length of time without needless digits: "125 ms",
// "10 s", "2 min", "1 h", "3 d".
func SpanOf(d time.Duration) string {
	unit := func(u time.Duration, name string) string {
		return strconv.FormatFloat(float64((d*10+u/2)/u)/10, 'f', -1, 64) + " " + name
	}
	switch {
	case d < time.Millisecond:
		return unit(time.Microsecond, "µs")
	case d < time.Second:
		return unit(time.Millisecond, "ms")
	case d < 100*time.Second:
		return unit(time.Second, "s")
	case d < 100*time.Minute:
		return unit(time.Minute, "min")
	case d < 48*time.Hour:
		return unit(time.Hour, "h")
	}
	return unit(24*time.Hour, "d")
}

// Plural writes "1 pod", "4 pods".
func Plural(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + one + "s"
}
