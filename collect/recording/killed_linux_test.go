package recording

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kconverge/kconverge/collect"
)

// recordsFor names the file that the test's program records to when it is started again.
const recordsFor = "KCONVERGE_TEST_RECORDS_TO"

func TestMain(m *testing.M) {
	if path := os.Getenv(recordsFor); path != "" {
		recordUntilKilled(path)
	}
	os.Exit(m.Run())
}

// recordUntilKilled records events as fast as it can for a while, then some, and says
// the number of each once it is written.
func recordUntilKilled(path string) {
	w, err := Create(path, Options{Plain: true})
	if err != nil {
		panic(err)
	}
	out := bufio.NewWriterSize(os.Stdout, 64)
	for seq := uint64(1); ; seq++ {
		e := collect.Event{Seq: seq, At: time.Now(), Source: collect.SourceUser, Payload: &collect.Action{Text: strings.Repeat(fmt.Sprint(seq, " "), 20)}}
		if seq == 1 {
			e.Payload = &collect.Session{Kind: "lab", Name: "lab", Started: e.At}
		}
		if err := w.Write(e); err != nil {
			panic(err)
		}
		fmt.Fprintln(out, seq, e.At.UnixNano())
		if seq%50 == 0 {
			time.Sleep(time.Millisecond) // a pace, nothing waits for it
		}
	}
}

// TestAProgramThatIsKilledAtAnyMomentLosesItsLastSecond: real programs, killed while they
// write. Every file that holds a second opens, and holds what was written, in its
// order, up to a moment at most a second before.
func TestAProgramThatIsKilledAtAnyMomentLosesItsLastSecond(t *testing.T) {
	rnd := rand.New(rand.NewPCG(uint64(os.Getpid()), 1))
	dir := t.TempDir()
	var wg sync.WaitGroup
	for i := range 12 {
		alive := time.Duration(rnd.Int64N(int64(3 * time.Second)))
		wg.Go(func() {
			path := filepath.Join(dir, strconv.Itoa(i))
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), recordsFor+"="+path)
			var said strings.Builder
			cmd.Stdout = &said
			if err := cmd.Start(); err != nil {
				t.Error(err)
				return
			}
			<-time.After(alive) // a random moment
			if err := cmd.Process.Kill(); err != nil {
				t.Error(err)
			}
			_ = cmd.Wait() // it was killed
			if err := judgeKilled(path, said.String()); err != nil {
				t.Errorf("killed after %s: %v", alive, err)
			}
		})
	}
	wg.Wait()
}

// judgeKilled compares a file with what its writer said that it wrote.
func judgeKilled(path, said string) error {
	var times []time.Time // of each number, from 1
	lines := strings.Split(said, "\n")
	for _, line := range lines[:len(lines)-1] { // the last one may be cut
		var seq int
		var ns int64
		if _, err := fmt.Sscan(line, &seq, &ns); err != nil || seq != len(times)+1 {
			return fmt.Errorf("it said %q after %d", line, len(times))
		}
		times = append(times, time.Unix(0, ns))
	}
	// A second, and what a busy machine takes to wake up.
	const second = 3 * time.Second
	f, err := Open(path)
	if err != nil {
		if len(times) > 0 && times[len(times)-1].Sub(times[0]) > second {
			return err
		}
		return nil // nothing had to be there yet
	}
	defer f.Close()
	r := f.Read(0)
	n := 0
	for {
		e, err := r.Next()
		if err != nil {
			break
		}
		if n++; e.Seq != uint64(n) {
			return fmt.Errorf("event %d follows %d", e.Seq, n-1)
		}
		if n <= len(times) && !e.At.Equal(times[n-1]) {
			return fmt.Errorf("event %d is of %s, it was written with %s", n, e.At, times[n-1])
		}
	}
	if r.Damaged > 0 || n == 0 {
		return fmt.Errorf("%d events, %d parts cannot be read", n, r.Damaged)
	}
	if n < len(times) {
		if lost := times[len(times)-1].Sub(times[n]); lost > second {
			return fmt.Errorf("the last %s are lost", lost)
		}
	}
	return nil
}
