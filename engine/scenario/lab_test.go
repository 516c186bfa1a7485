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
const atOnce = "4"

func TestMain(m *testing.M) {
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	flag.Parse()
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		_ = f.Value.Set(atOnce)
	}
	os.Exit(m.Run())
}

var heavy = flag.Bool("heavy", false, "play the scenarios that take minutes, too")

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
func play(t *testing.T, s *scenario.Scenario, control bool) (*scenario.Outcome, *live.Runtime, *transcript) {
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
	if e := <-done; e != nil {
		t.Errorf("the lab ended with %v", e)
	}
	if errors.Is(err, scenario.ErrNoPackets) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, tr)
	}
	return out, rt, tr
}

// TestScenarios plays each scenario, whose expectations must be met, and once more
// without its cause, when one of them must not be.
func TestScenarios(t *testing.T) {
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
			out, _, tr := play(t, s, false)
			if len(out.Results) == 0 {
				t.Error("nothing was expected")
			}
			if !out.Met() {
				t.Errorf("not met:\n%s", tr)
			} else {
				t.Logf("\n%s", tr)
			}
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
			if out, _, tr := play(t, s, true); out.Met() {
				t.Errorf("everything was met without the cause:\n%s", tr)
			} else {
				t.Logf("\n%s", tr)
			}
		})
	}
}
