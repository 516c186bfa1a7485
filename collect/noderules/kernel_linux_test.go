package noderules

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/collect/netns"
	"golang.org/x/sys/unix"
)

// testNS is a network namespace that lives as long as its test: it is held by a
// file descriptor only.
type testNS struct{ fd int }

// newNS makes a namespace on a thread that is thrown away.
func newNS(t testing.TB) testNS {
	t.Helper()
	var fd int
	err := netns.OnThread(func() (err error) {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("unshare: %w", err)
		}
		fd, err = unix.Open("/proc/thread-self/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		return err
	})
	if err != nil {
		t.Fatalf("network namespace: %v (these tests need root)", err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	return testNS{fd}
}

// do runs f on a thread inside the namespace.
func (n testNS) do(f func() error) error {
	return netns.Do(n.fd, f)
}

// nft runs one nft transaction.
func (n testNS) nft(t testing.TB, script string) {
	t.Helper()
	if err := n.tryNft(script); err != nil {
		t.Fatal(err)
	}
}

func (n testNS) tryNft(script string) error {
	return n.do(func() error {
		cmd := exec.Command("nft", "-f", "-")
		cmd.Stdin = bytes.NewReader([]byte(script))
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("nft -f of %d bytes: %w: %s", len(script), err, out)
		}
		return nil
	})
}

func (n testNS) list(t testing.TB) []byte {
	t.Helper()
	var out []byte
	err := n.do(func() (err error) {
		out, err = exec.Command("nft", "-j", "list", "ruleset").Output()
		return err
	})
	if err != nil {
		t.Fatalf("nft list ruleset: %v", err)
	}
	return out
}

// kubeProxyNS is a namespace with kube-proxy's base and the Services of every
// kind.
func kubeProxyNS(t testing.TB) testNS {
	n := newNS(t)
	n.nft(t, fixture(t, "kube-proxy-1.37-base-ip.nft"))
	n.nft(t, fixture(t, "kube-proxy-1.37-services-ip.nft"))
	return n
}

// collector is a Sink that a test can wait on.
type collector struct {
	mu     sync.Mutex
	events []collect.Event
	more   chan struct{}
	ended  chan struct{} // closed when the source has ended
}

func newCollector() *collector {
	return &collector{more: make(chan struct{}, 1), ended: make(chan struct{})}
}

func (c *collector) Emit(e collect.Event) {
	c.mu.Lock()
	c.events = append(c.events, e)
	c.mu.Unlock()
	select {
	case c.more <- struct{}{}:
	default:
	}
}

// all returns the events so far.
func (c *collector) all() []collect.Event {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.events)
}

// wait returns the first event from index on that f accepts, and its index.
func (c *collector) wait(t testing.TB, from int, f func(collect.Event) bool) (collect.Event, int) {
	t.Helper()
	for {
		c.mu.Lock()
		events := c.events
		c.mu.Unlock()
		for ; from < len(events); from++ {
			if f(events[from]) {
				return events[from], from
			}
		}
		select {
		case <-c.more:
		case <-c.ended:
			t.Fatal("the source ended before the event came")
		case <-time.After(2 * time.Minute): // a hang, not slowness
			t.Fatalf("the event never came; there were %d events", len(events))
		}
	}
}

// start runs a Source over the namespace until the test ends.
func start(t testing.TB, o Options) (*Source, *collector) {
	t.Helper()
	s, c := New(o), newCollector()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		err := s.Run(ctx, c)
		close(c.ended)
		done <- err
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	return s, c
}

func isSynced(e collect.Event) bool {
	st, ok := e.Payload.(*collect.SourceState)
	return ok && st.State == collect.SourceSynced
}

func isRules(e collect.Event) bool {
	_, ok := e.Payload.(*collect.Rules)
	return ok
}

// vouchedAt waits until the source vouches for the generation that the
// namespace is at.
func vouched(t testing.TB, n testNS, s *Source, c *collector) uint32 {
	t.Helper()
	q, err := openQuery(Options{NetNS: n.fd}.withDefaults())
	if err != nil {
		t.Fatal(err)
	}
	defer q.close()
	gen, err := q.generation()
	if err != nil {
		t.Fatal(err)
	}
	s.Vouch()
	c.wait(t, 0, func(e collect.Event) bool {
		v, ok := e.Payload.(*collect.Vouch)
		return ok && !older(v.Generation, gen)
	})
	return gen
}
