package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// labGCPercent is how much the lab's memory may grow before garbage is collected,
// of what is in use. Go's own 100 costs 20 MB more with 10 Services and hundreds
// with thousands of pods; less than this costs more of a processor than an idle
// lab is meant to take.
const labGCPercent = 60

// spareMemory sets that, unless GOGC asks for something else.
func spareMemory() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(labGCPercent)
	}
}

// heapRoom is how much of the memory a program may use to collect garbage less often.
type heapRoom struct {
	// least is the heap below which none is collected, in bytes.
	least uint64
	// percent is how much a larger one may grow, of what is in use.
	percent int
}

var (
	// watchRoom: a small cluster's few megabytes would be gone through several times a
	// second while many events come, which took a sixth of the processor time that
	// `watch` needed.
	watchRoom = heapRoom{64 << 20, 100}
	// replayRoom: each moment that is shown is a model made anew, some tens of
	// megabytes, and collecting took a third of the time.
	replayRoom = heapRoom{160 << 20, labGCPercent}
)

// spareProcessor lets the heap grow as it says, unless GOGC asks for something else.
func spareProcessor(room heapRoom) {
	if os.Getenv("GOGC") == "" {
		room.adjust()
	}
}

// heapMark dies with each collection.
type heapMark struct{ _ *heapMark }

// adjust sets when the next collection is due, and itself again after it.
func (r heapRoom) adjust() {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	debug.SetGCPercent(r.gcPercent(sample[0].Value.Uint64()))
	runtime.SetFinalizer(&heapMark{}, func(*heapMark) { r.adjust() })
}

// gcPercent is by how much of what is in use the heap may grow.
func (r heapRoom) gcPercent(live uint64) int {
	most := int(r.least / (4 << 20) * 100) // of 4 MB, which Go takes as the least, that is r.least
	if live == 0 {
		return most
	}
	if live >= r.least {
		return r.percent
	}
	return int(max(uint64(r.percent), min(uint64(most), (r.least-live)*100/live)))
}
