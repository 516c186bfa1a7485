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

// spareMemory sets that, unless GOGC asks for something else. A replay is set to the
// same.
func spareMemory() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(labGCPercent)
	}
}

// roomyHeap is the heap below which what is only watched collects no garbage. A small
// cluster's few megabytes would be gone through several times a second while many
// events come, which took a sixth of the processor time that `watch` needed.
const roomyHeap = 64 << 20

// spareProcessor lets the heap grow to roomyHeap before garbage is collected, and a
// larger one as Go does by itself, unless GOGC asks for something else.
func spareProcessor() {
	if os.Getenv("GOGC") == "" {
		adjustGC()
	}
}

// heapMark dies with each collection.
type heapMark struct{ _ *heapMark }

// adjustGC sets when the next collection is due, and itself again after it.
func adjustGC() {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	debug.SetGCPercent(gcPercent(sample[0].Value.Uint64()))
	runtime.SetFinalizer(&heapMark{}, func(*heapMark) { adjustGC() })
}

// gcPercent is by how much of what is in use the heap may grow.
func gcPercent(live uint64) int {
	const usual, most = 100, 1600 // of 4 MB, which Go takes as the least, that is roomyHeap
	if live == 0 {
		return most
	}
	if live >= roomyHeap {
		return usual
	}
	return int(max(usual, min(most, (roomyHeap-live)*100/live)))
}
