package reconcile

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"

	"k8s.io/utils/clock"
)

func TestTheNumberOfWorkersCanChangeWhileTheyWork(t *testing.T) {
	entered, release := make(chan int, 100), make(chan struct{})
	l, _ := bareLoop(t, clock.RealClock{}, func(_ context.Context, n int, _ string) ([]string, error) {
		entered <- n
		<-release
		return nil, nil
	})
	for i := range 12 {
		l.queue.Add(fmt.Sprintf("ns/%d", i))
	}
	in := func(n int) (workers map[int]bool) {
		workers = map[int]bool{}
		for range n {
			workers[<-entered] = true
		}
		return workers
	}
	if w := in(2); !w[0] || !w[1] {
		t.Errorf("workers %v, want the first two", w)
	}
	l.places.set(4)
	if w := in(2); !w[2] || !w[3] {
		t.Errorf("workers %v, want two more", w)
	}
	l.places.set(1)
	for range 4 {
		release <- struct{}{} // each finishes what it works on
	}
	for range 8 {
		if w := in(1); !w[0] {
			t.Errorf("worker %v works, want the first alone", w)
		}
		if len(entered) > 0 {
			t.Error("another one works beside it")
		}
		release <- struct{}{}
	}
}

func TestPlacesAreNeverMoreThanTheirNumber(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlaces(3)
		taken := 0
		go func() {
			for range 5 {
				p.take()
				taken++
			}
		}()
		synctest.Wait()
		if taken != 3 {
			t.Errorf("%d places of 3 are taken", taken)
		}
		p.set(1)
		p.give(0)
		p.give(1)
		synctest.Wait()
		if taken != 3 {
			t.Errorf("%d were taken although one is left of one", taken)
		}
		p.give(2)
		synctest.Wait()
		if taken != 4 {
			t.Errorf("%d were taken, want one more", taken)
		}
		p.set(2)
		synctest.Wait()
		if taken != 5 {
			t.Errorf("%d were taken, want all", taken)
		}
	})
}
