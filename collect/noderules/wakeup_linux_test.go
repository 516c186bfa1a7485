package noderules

import (
	"runtime"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"github.com/kconverge/kconverge/collect"
)

// Whatever a thread waited for, what woke it lies between the bounds.
func TestWhatEndedAWaitLiesBetweenItsBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := func(what string) time.Duration {
			return time.Duration(rapid.Int64Range(0, int64(100*time.Millisecond)).Draw(t, what))
		}
		began := time.Unix(1000, 0)
		in, inQueued := d("on the way in"), d("of it on a run queue")
		slept, ready := d("asleep"), d("on a run queue")
		back, backQueued := d("on the way back"), d("of it on a run queue")
		inQueued, backQueued = min(in, inQueued), min(back, backQueued)
		happened := began.Add(in + slept)
		now := happened.Add(ready + back)
		u := wakeup{idle: began, began: began, slept: slept + ready, queued: inQueued + ready + backQueued, known: true}
		from, to := u.bounds(now)
		if happened.Before(from) || happened.After(to) {
			t.Fatalf("happened at %s, bounds %s and %s", happened.Sub(began), from.Sub(began), to.Sub(began))
		}
		if u.slept-u.queued >= noSleep && to.Sub(from) > 2*(in+back+clocksApart) || to.After(now) {
			t.Fatalf("%s wide, %s was not told", to.Sub(from), in+back)
		}
	})
}

// On processors that are busy the thread is woken late, and knows by how much.
func TestAWakeUpIsKnownAlsoWhenTheMachineIsBusy(t *testing.T) {
	stop := make(chan struct{})
	var busy sync.WaitGroup
	for range 4 * runtime.NumCPU() {
		busy.Go(func() {
			runtime.LockOSThread() // so that the kernel, not Go, shares the processors
			for {
				select {
				case <-stop:
					return
				default:
				}
			}
		})
	}
	defer busy.Wait()
	defer close(stop)
	// Threads enough for all of them: what is to be seen is the kernel's doing.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(8 * runtime.NumCPU()))

	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	w := newWaiter(collect.SystemClock{})
	defer w.close()
	if _, ok := w.queued(); !ok {
		t.Skip("this kernel does not tell how long a thread waited to be let run (CONFIG_SCHED_INFO)")
	}
	var late, width time.Duration
	const waits = 40
	wrong := 0
	for range waits {
		var sent [2]time.Time
		written := make(chan error, 1)
		idle := time.Now()
		go func() {
			sent[0] = time.Now()
			_, err := unix.Write(fd, []byte{1, 0, 0, 0, 0, 0, 0, 0})
			sent[1] = time.Now()
			written <- err
		}()
		u, err := w.wait(idle, []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}})
		if err != nil {
			t.Fatal(err)
		}
		var b [8]byte
		_, err = unix.Read(fd, b[:])
		now := time.Now()
		if e := <-written; e != nil {
			t.Fatal(e)
		}
		if err != nil {
			continue // a signal ended the wait
		}
		from, to := u.bounds(now)
		if to.Before(sent[0]) || from.After(sent[1]) {
			wrong++
			t.Logf("written between %s and %s before it was read; the bounds are %s and %s before", now.Sub(sent[0]), now.Sub(sent[1]), now.Sub(from), now.Sub(to))
		}
		late, width = max(late, now.Sub(sent[1])), max(width, to.Sub(from))
	}
	t.Logf("read at most %s late, known to %s, %d of %d outside their bounds", late, width, wrong, waits)
	// Whoever runs a virtual machine may hold up its processors unseen.
	if wrong > waits/10 {
		t.Errorf("%d of %d were written outside the bounds", wrong, waits)
	}
}
