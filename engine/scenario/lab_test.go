package scenario_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/klog/v2"

	"github.com/kconverge/kconverge/engine/lab"
	"github.com/kconverge/kconverge/engine/live"
	"github.com/kconverge/kconverge/engine/scenario"
)

// limit is when a scenario is given up: far beyond what one takes.
const limit = 12 * time.Minute

// atOnce is how many are played at a time: they mostly wait.
const atOnce = "6"

func TestMain(m *testing.M) {
	flag.Parse()
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		_ = f.Value.Set(atOnce)
	}
	os.Exit(m.Run())
}

var (
	heavy = flag.Bool("heavy", false, "play the scenarios that take minutes, too")
	races = flag.Bool("races", false, "play them under the race detector")
)

// transcript is what a scenario told.
type transcript struct {
	mu   sync.Mutex
	text strings.Builder
	from time.Time
}

func (tr *transcript) tell(l scenario.Line) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	fmt.Fprintf(&tr.text, "%6.1fs %-8s %s\n", time.Since(tr.from).Seconds(), l.Kind, l.Text)
	if l.Found != "" {
		fmt.Fprintf(&tr.text, "                 %s\n", l.Found)
	}
}

func (tr *transcript) String() string {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return tr.text.String()
}

// play runs a scenario in a lab of its own.
func play(t *testing.T, s *scenario.Scenario, control bool) (*scenario.Outcome, *transcript, error) {
	t.Helper()
	var mu sync.Mutex
	var kubeconfig []byte
	l := lab.New(lab.Options{Nodes: s.Nodes, Addr: "127.0.0.1:0", Kubeconfig: func(b []byte) error {
		mu.Lock()
		defer mu.Unlock()
		kubeconfig = b
		return nil
	}})
	rt := live.New(live.Options{Session: l.Session()})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- rt.Run(ctx, l) }()
	tr := &transcript{from: time.Now()}
	playing, giveUp := context.WithTimeout(t.Context(), limit)
	defer giveUp()
	out, err := scenario.Play(playing, scenario.Options{
		Scenario: s, Lab: l, Runtime: rt, Control: control, StopAtFirst: control, Tell: tr.tell,
		Kubeconfig: func() []byte {
			mu.Lock()
			defer mu.Unlock()
			return kubeconfig
		},
	})
	cancel()
	err = errors.Join(err, <-done)
	if errors.Is(err, scenario.ErrNoPackets) {
		t.Skip(err)
	}
	return out, tr, err
}

// attempts is how often a scenario is played where the machine keeps it from running, and
// heldUp from when on it does.
const (
	attempts = 3
	heldUp   = 200 * time.Millisecond
)

// judged plays until it comes out right. What comes out wrong is a failure, unless this
// process was kept from running meanwhile: then times are the machine's and not the
// scenario's, and say nothing.
func judged(t *testing.T, wrong string, play func() (right bool, tr *transcript, err error)) {
	t.Helper()
	for range attempts {
		late := lateness(t.Context())
		right, tr, err := play()
		worst := late()
		if err != nil {
			right, wrong = false, err.Error()
		}
		if right {
			t.Logf("\n%s", tr)
			return
		}
		if worst < heldUp {
			t.Fatalf("%s (kept from running for %s at most):\n%s", wrong, worst, tr)
		}
		t.Logf("%s, but this process was kept from running for %s:\n%s", wrong, worst, tr)
	}
	t.Skipf("this machine is too busy to tell: %d times a timer of this process was more than %s late", attempts, heldUp)
}

// lateness watches how late a timer comes, and tells the worst in the end.
func lateness(ctx context.Context) (end func() time.Duration) {
	const every = 20 * time.Millisecond
	ctx, cancel := context.WithCancel(ctx)
	worst := make(chan time.Duration, 1)
	go func() {
		var most time.Duration
		tick := time.NewTimer(every)
		for due := time.Now().Add(every); ; {
			select {
			case <-ctx.Done():
				worst <- most
				return
			case <-tick.C:
				most = max(most, time.Since(due))
				due = time.Now().Add(every)
				tick.Reset(every)
			}
		}
	}()
	return func() time.Duration { cancel(); return <-worst }
}

// TestScenarios plays each scenario, whose expectations must be met, and once more
// without its cause, when one of them must not be.
func TestScenarios(t *testing.T) {
	if underRace && !*races {
		t.Skip("six labs under the race detector keep each other from running in time: played without it, and with -races")
	}
	files, err := filepath.Glob("scenarios/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		// From the folder, so that one can be changed and played without building.
		s, err := scenario.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		if s.Heavy && !*heavy {
			continue
		}
		t.Run(s.Name, func(t *testing.T) {
			if !s.Alone {
				t.Parallel()
			}
			judged(t, "not met", func() (bool, *transcript, error) {
				out, tr, err := play(t, s, false)
				return out.Met() && len(out.Results) > 0, tr, err
			})
		})
		if !s.HasControl() {
			if s.Name != scenario.TourName {
				t.Errorf("%s has no cause to leave out", s.Name)
			}
			continue
		}
		t.Run(s.Name+"/control", func(t *testing.T) {
			if !s.Alone {
				t.Parallel()
			}
			judged(t, "everything was met without the cause", func() (bool, *transcript, error) {
				out, tr, err := play(t, s, true)
				return !out.Met(), tr, err
			})
		})
	}
}
