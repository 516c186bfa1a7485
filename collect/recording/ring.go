package recording

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/kconverge/kconverge/collect"
)

const (
	// ringPart is how much of a session a file of a ring holds, by the time of
	// its events, and ringParts how many are kept: 15 minutes at least.
	ringPart  = 5 * time.Minute
	ringParts = 4
	ringGlob  = "ring-*.kconverge"
	// ringSessions is how many sessions are kept, with the one that runs.
	ringSessions = 8
)

// ErrNoSession is wrapped by the error about a ring that holds nothing.
var ErrNoSession = errors.New("no session was recorded")

// ErrRing is wrapped by a Ring's errors: what fails is not what somebody asked for.
var ErrRing = errors.New("the last minutes are not kept")

// Ring records the last 15 to 20 minutes of a session in a folder, always. Each of its
// files begins with what stood then, so that it can be read alone. It is safe for
// concurrent use.
type Ring struct {
	dir, id string
	lock    *os.File

	mu       sync.Mutex
	standing *Standing
	part     int
	w        *Writer
	until    time.Time // of the events of this part
}

// NewRing starts a ring in dir and forgets old ones there. started names it.
func NewRing(dir string, started time.Time) (*Ring, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRing, err)
	}
	forget(dir)
	r := &Ring{dir: dir, id: started.UTC().Format("20060102T150405.000") + "-" + strconv.Itoa(os.Getpid()), standing: NewStanding()}
	f, err := os.OpenFile(filepath.Join(dir, "ring-"+r.id+".lock"), os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRing, err)
	}
	r.lock = f
	return r, nil
}

// Write implements engine/live's Recorder.
func (r *Ring) Write(e collect.Event) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.w == nil || e.At.After(r.until) {
		if err := r.turn(e.At); err != nil {
			return fmt.Errorf("%w: %w", ErrRing, err)
		}
	}
	r.standing.Apply(e)
	if err := r.w.Write(e); err != nil {
		return fmt.Errorf("%w: %w", ErrRing, err)
	}
	return nil
}

// turn goes on in another file.
func (r *Ring) turn(at time.Time) error {
	if r.w != nil {
		if err := r.w.Close(); err != nil {
			return err
		}
	}
	r.part++
	w, err := Create(r.path(r.part), Options{Plain: true})
	if err != nil {
		return err
	}
	r.w, r.until = w, at.Add(ringPart)
	for _, e := range r.standing.Baseline() {
		if err := w.Write(e); err != nil {
			return err
		}
	}
	if old := r.part - ringParts; old > 0 {
		_ = os.Remove(r.path(old)) // if not, the next program does
	}
	return nil
}

func (r *Ring) path(part int) string {
	return filepath.Join(r.dir, fmt.Sprintf("ring-%s-%04d.kconverge", r.id, part))
}

// Close ends the ring; its files stay.
func (r *Ring) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var err error
	if r.w != nil {
		err = r.w.Close()
	}
	return errors.Join(err, os.Remove(r.lock.Name()), r.lock.Close())
}

// Save writes the last minutes to a recording, which must not exist yet.
func (r *Ring) Save(path string, o Options) error {
	r.mu.Lock()
	if r.w != nil {
		r.w.Flush()
	}
	parts := ringsIn(r.dir)["ring-"+r.id]
	r.mu.Unlock()
	return join(parts, path, o)
}

// SaveLast writes the session in dir that ended last to a recording, which must not exist
// yet: one that goes on only where no other is left. ErrNoSession says that there is none.
func SaveLast(dir, path string, o Options) error {
	all := ringsIn(dir)
	var running, ended []string
	for _, id := range byLastWrite(all) {
		if inUse(dir, id) {
			running = append(running, id)
		} else {
			ended = append(ended, id)
		}
	}
	// One whose program could write nothing is none.
	for _, id := range slices.Backward(append(running, ended...)) {
		parts := slices.DeleteFunc(all[id], func(path string) bool {
			f, err := Open(path)
			if err == nil {
				_ = f.Close()
			}
			return err != nil
		})
		if len(parts) > 0 {
			return join(parts, path, o)
		}
	}
	return fmt.Errorf("%w in %s", ErrNoSession, dir)
}

// ringsIn are the files of each ring, in their order.
func ringsIn(dir string) map[string][]string {
	files, _ := filepath.Glob(filepath.Join(dir, ringGlob)) // the pattern is right
	out := map[string][]string{}
	for _, f := range files {
		name := strings.TrimSuffix(filepath.Base(f), ".kconverge")
		if i := strings.LastIndexByte(name, '-'); i > 0 {
			out[name[:i]] = append(out[name[:i]], f)
		}
	}
	for _, parts := range out {
		slices.Sort(parts)
	}
	return out
}

// byLastWrite are the names of rings, the one written to last at the end: of two programs
// side by side that is the one that ended last, whichever was started first.
func byLastWrite(all map[string][]string) []string {
	last := map[string]time.Time{}
	for id, parts := range all {
		for _, p := range parts {
			if info, err := os.Stat(p); err == nil && info.ModTime().After(last[id]) {
				last[id] = info.ModTime()
			}
		}
	}
	return slices.SortedFunc(maps.Keys(all), func(a, b string) int {
		return cmp.Or(last[a].Compare(last[b]), strings.Compare(a, b))
	})
}

// forget removes the oldest rings that no program writes to.
func forget(dir string) {
	all := ringsIn(dir)
	ids := byLastWrite(all)
	for _, id := range ids[:max(0, len(ids)-ringSessions+1)] {
		if inUse(dir, id) {
			continue
		}
		for _, f := range append(all[id], filepath.Join(dir, id+".lock")) {
			_ = os.Remove(f)
		}
	}
}

// inUse reports that a program writes to a ring now.
func inUse(dir, id string) bool {
	f, err := os.OpenFile(filepath.Join(dir, id+".lock"), os.O_WRONLY, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil
}

// join writes one recording of several that follow each other, each of which begins
// with what stood in the one before.
func join(parts []string, path string, o Options) error {
	if len(parts) == 0 {
		return fmt.Errorf("%w yet", ErrNoSession)
	}
	w, err := Create(path, o)
	if err != nil {
		return err
	}
	last := uint64(0)
	for i, part := range parts {
		if last, err = copyAfter(w, part, last, i == 0); err != nil {
			return errors.Join(err, w.Close())
		}
	}
	return w.Close()
}

// copyAfter writes the events of a recording with higher numbers than the last one, or
// of the first all, and gives the new last number.
func copyAfter(w *Writer, path string, last uint64, first bool) (uint64, error) {
	f, err := Open(path)
	if err != nil {
		if !first && f == nil {
			return last, nil // its program was killed before a second had passed
		}
		return last, err
	}
	defer f.Close()
	before := last
	r := f.Read(0)
	for {
		e, err := r.Next()
		if errors.Is(err, io.EOF) {
			return last, nil
		}
		if err != nil {
			return last, err
		}
		if !first && e.Seq <= before {
			continue
		}
		if err := w.Write(e); err != nil {
			return last, err
		}
		last = max(last, e.Seq)
	}
}
