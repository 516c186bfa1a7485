package view

import "time"

// Window is the time that the Timeline speaks of: that between two marks, else what its
// last picture showed; ok is false before there was one.
func (v *TimelineView) Window() (from, to time.Time, ok bool) {
	if len(v.marks) == len(markNames) {
		from, to = v.marks[0], v.marks[1]
		if to.Before(from) {
			from, to = to, from
		}
		return from, to, true
	}
	if v.pic == nil {
		return from, to, false
	}
	return v.pic.Scale.From(), v.pic.Scale.To(), true
}
