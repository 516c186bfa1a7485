package main

import "testing"

func TestASmallHeapHasRoomAndALargeOneDoesNotGrowMoreThanUsual(t *testing.T) {
	for _, c := range []struct {
		live uint64
		want int
	}{{0, 1600}, {1 << 20, 1600}, {16 << 20, 300}, {32 << 20, 100}, {48 << 20, 100}, {64 << 20, 100}, {1 << 30, 100}} {
		if got := gcPercent(c.live); got != c.want {
			t.Errorf("with %d bytes in use: %d %%, not %d", c.live, got, c.want)
		}
		if goal := c.live + c.live*uint64(gcPercent(c.live))/100; goal > max(roomyHeap, 2*c.live) {
			t.Errorf("with %d bytes in use the heap may grow to %d", c.live, goal)
		}
	}
}
