package netns

import (
	"errors"
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

func network(t *testing.T, of string) string {
	t.Helper()
	name, err := os.Readlink("/proc/" + of + "/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	return name
}

// What runs inside must not be seen by the goroutines of anybody else, however
// many threads the program has.
func TestOnlyTheThreadOfFIsInTheNamespace(t *testing.T) {
	outside := network(t, "self")
	var fd int
	var inside string
	err := OnThread(func() (err error) {
		if unix.Gettid() == unix.Getpid() {
			return errors.New("on the process's first thread")
		}
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return err
		}
		if inside, err = os.Readlink("/proc/thread-self/ns/net"); err != nil {
			return err
		}
		fd, err = unix.Open("/proc/thread-self/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		return err
	})
	if err != nil {
		t.Fatalf("%v (this test needs root)", err)
	}
	defer unix.Close(fd)
	if inside == outside {
		t.Fatal("no new namespace was made")
	}
	for range 4 * runtime.GOMAXPROCS(0) {
		err := Do(fd, func() error {
			if got := network(t, "thread-self"); got != inside {
				t.Errorf("f runs in %s, not in %s", got, inside)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if got := network(t, "thread-self"); got != outside {
			t.Errorf("a thread was left in %s", got)
		}
		if got := network(t, "self"); got != outside {
			t.Errorf("the process is in %s now", got)
		}
	}
}

func TestTheErrorOfFIsHandedOn(t *testing.T) {
	want := errors.New("mine")
	if err := OnThread(func() error { return want }); err != want {
		t.Errorf("got %v", err)
	}
	if err := Do(-1, func() error { return nil }); !errors.Is(err, unix.EBADF) {
		t.Errorf("a namespace that does not exist: %v", err)
	}
}
