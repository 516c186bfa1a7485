package nodelog

import (
	"testing"
	"time"

	"github.com/kconverge/kconverge/collect"
)

// The API refuses sinceSeconds=0.
func TestAPartOfASecondIsAskedForAsAWholeOne(t *testing.T) {
	for d, want := range map[time.Duration]int64{time.Millisecond: 1, 500 * time.Millisecond: 1, time.Second: 1, 1500 * time.Millisecond: 2, DefaultSince: 600} {
		if got := wholeSeconds(d); got != want {
			t.Errorf("%s is %d s, want %d", d, got, want)
		}
	}
}

func TestALogIsFollowedFromHalfASecondAgo(t *testing.T) {
	c := newCluster(t)
	s := &script{node: "node-1", instance: "a"}
	p := c.addPod("agent-1", "node-1", 1)
	v := followSince(t, c, 500*time.Millisecond)
	v.until("the log is followed", func() bool { return v.at("node-1").state.State == collect.SourceStarting })
	c.write(p, s.hello()...)
	v.until("what comes is told", func() bool { return s.has(v.at("node-1")) })
}
