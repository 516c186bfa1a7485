package timeline

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestGapsAreDrawnOverALane(t *testing.T) {
	at := func(s int) time.Time {
		if s < 0 {
			return time.Time{}
		}
		return epoch.Add(time.Duration(s) * time.Second)
	}
	lane := []PlaneChange{{At: at(10), Have: 1, Knowledge: Known}, {At: at(20), Have: 2, Knowledge: Known}, {At: at(30), Have: 3, Knowledge: Known}}
	for _, tt := range []struct {
		name     string
		from, to int
		want     string
	}{
		{"between two changes", 12, 15, "10:1 12:1gap 15:1 20:2 30:3"},
		{"across one change", 12, 25, "10:1 12:1gap 20:2gap 25:2 30:3"},
		{"from a change to a change", 10, 20, "10:1gap 20:2 30:3"},
		{"open", 25, -1, "10:1 20:2 25:2gap 30:3gap"},
		{"open after the last change", 40, -1, "10:1 20:2 30:3 40:3gap"},
		{"begun before the first change", 5, 12, "10:1gap 12:1 20:2 30:3"},
		{"over before the first change", 5, 7, "10:1 20:2 30:3"},
		{"of no length", 12, 12, "10:1 20:2 30:3"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, c := range overlay(lane, at(tt.from), at(tt.to)) {
				s := fmt.Sprintf("%d:%d", int(c.At.Sub(epoch).Seconds()), c.Have)
				if c.Knowledge == InGap {
					s += "gap"
				}
				got = append(got, s)
			}
			if s := strings.Join(got, " "); s != tt.want {
				t.Errorf("\n got %s\nwant %s", s, tt.want)
			}
			if lane[0].Knowledge != Known || lane[1].Knowledge != Known {
				t.Error("the lane itself was written to")
			}
		})
	}
}
