package cluster_test

import (
	"bufio"
	"math/bits"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/kconverge/kconverge/engine/lab/nodes"
)

// monitor is an `nft monitor` in a node's namespace, and when it received and printed
// each generation. What it prints comes late by what it takes to print everything
// before, in writes of a few bytes: strace stamps when it takes the first
// notification of a generation from its socket. Both go before everything else on
// the machine: a witness that waits for a processor tells of that.
type monitor struct {
	mu       sync.Mutex
	received map[uint16]time.Time // by the lower half of the generation
	printed  map[uint32]time.Time
}

var (
	newGeneration = regexp.MustCompile(`^# new generation (\d+) by process`)
	// A notification (not an answer to a query, which goes to no group); each
	// of its messages bears the lower half of the generation that it is of.
	notification = regexp.MustCompile(`^\d+ +(\d+)\.(\d{6}) recvmsg\(.*nl_groups=0x000040`)
	generationOf = regexp.MustCompile(`res_id=(?:htons\((\d+)\)|0x([0-9a-f]+))`)
)

func (w *world) monitor(n *nodes.Node) *monitor {
	w.Helper()
	m := &monitor{received: map[uint16]time.Time{}, printed: map[uint32]time.Time{}}
	trace, traced := w.pipe()
	out, in := w.pipe()
	cmd := exec.Command("nice", "-n", "-20", "strace", "-f", "--seccomp-bpf", "-X", "raw", "-qq", "-ttt", "-e", "trace=recvmsg", "-e", "signal=none", "-s", "8", "-o", "/proc/self/fd/3", "nft", "monitor")
	// Ended as a group: strace lets go of what it traces.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = in, os.Stderr, []*os.File{traced}
	started, ended := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(ended)
		// Do keeps the thread, so that the signal of its end comes with the test's.
		_ = n.Do(func() error {
			err := cmd.Start()
			_, _ = in.Close(), traced.Close() // the programs have their own
			started <- err
			if err != nil {
				return err
			}
			return cmd.Wait()
		})
	}()
	w.must(<-started)
	var readers sync.WaitGroup
	readers.Go(func() { eachLine(out, m.print) })
	readers.Go(func() { eachLine(trace, m.receive) })
	w.Cleanup(func() {
		_ = unix.Kill(-cmd.Process.Pid, unix.SIGKILL)
		<-ended
		readers.Wait()
	})
	return m
}

// pipe gives one whose reader blocks in its thread, so that no other passes on what
// comes.
func (w *world) pipe() (out, in *os.File) {
	w.Helper()
	var fds [2]int
	w.must(unix.Pipe2(fds[:], unix.O_CLOEXEC))
	return os.NewFile(uintptr(fds[0]), "pipe"), os.NewFile(uintptr(fds[1]), "pipe")
}

// eachLine reads a pipe to its end; a line may be as long as strace makes it.
func eachLine(f *os.File, each func(line []byte, at time.Time)) {
	defer f.Close()
	for r := bufio.NewReaderSize(f, 1<<20); ; {
		line, long, err := r.ReadLine()
		if err != nil {
			return
		}
		each(line, time.Now())
		for long && err == nil { // what matters stands at the start
			_, long, err = r.ReadLine()
		}
	}
}

func (m *monitor) print(line []byte, at time.Time) {
	if f := newGeneration.FindSubmatch(line); f != nil {
		gen, _ := strconv.ParseUint(string(f[1]), 10, 32)
		m.mu.Lock()
		defer m.mu.Unlock()
		m.printed[uint32(gen)] = at
	}
}

func (m *monitor) receive(line []byte, _ time.Time) {
	f, g := notification.FindSubmatch(line), generationOf.FindSubmatch(line)
	if f == nil || g == nil {
		return
	}
	sec, _ := strconv.ParseInt(string(f[1]), 10, 64)
	usec, _ := strconv.ParseInt(string(f[2]), 10, 64)
	gen, _ := strconv.ParseUint(string(g[1]), 10, 16)
	if g[2] != nil { // as it stands there: strace takes 10 for a name
		raw, _ := strconv.ParseUint(string(g[2]), 16, 16)
		gen = uint64(bits.ReverseBytes16(uint16(raw)))
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.received[uint16(gen)]; !ok {
		m.received[uint16(gen)] = time.Unix(sec, usec*1000)
	}
}

// at tells when the monitor received the first word of a generation that it has
// printed, and when it had printed its end.
func (m *monitor) at(gen uint32) (received, printed time.Time, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	received, one := m.received[uint16(gen)]
	printed, other := m.printed[gen]
	return received, printed, one && other
}

func (m *monitor) listens() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.printed) > 0 && len(m.received) > 0
}
