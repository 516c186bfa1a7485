package main

import "testing"

func TestASmallHeapHasRoomAndALargeOneDoesNotGrowMoreThanUsual(t *testing.T) {
	for _, c := range []struct {
		room heapRoom
		live uint64
		want int
	}{
		{watchRoom, 0, 1600}, {watchRoom, 1 << 20, 1600}, {watchRoom, 16 << 20, 300}, {watchRoom, 32 << 20, 100}, {watchRoom, 48 << 20, 100},
		{watchRoom, 64 << 20, 100}, {watchRoom, 1 << 30, 100},
		{replayRoom, 0, 4000}, {replayRoom, 32 << 20, 400}, {replayRoom, 100 << 20, 60}, {replayRoom, 150 << 20, 60}, {replayRoom, 1 << 30, 60},
	} {
		got := c.room.gcPercent(c.live)
		if got != c.want {
			t.Errorf("with %d bytes in use: %d %%, not %d", c.live, got, c.want)
		}
		if goal := c.live + c.live*uint64(got)/100; goal > max(c.room.least, c.live+c.live*uint64(c.room.percent)/100) {
			t.Errorf("with %d bytes in use the heap may grow to %d", c.live, goal)
		}
	}
}
