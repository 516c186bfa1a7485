package main

import (
	"os"
	"runtime/debug"
)

// labGCPercent is how much the lab's memory may grow before garbage is collected,
// of what is in use. Go's own 100 costs 20 MB more with 10 Services and hundreds
// with thousands of pods; less than this costs more of a processor than an idle
// lab is meant to take.
const labGCPercent = 60

// A replay, which has nothing else to spare, is set to the same.

// spareMemory sets that, unless GOGC asks for something else.
func spareMemory() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(labGCPercent)
	}
}
