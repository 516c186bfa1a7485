package scenario_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/engine/live"
	"github.com/kconverge/kconverge/engine/scenario"
)

// readyLab is a lab that is there and does nothing.
type readyLab struct{ scenario.Lab }

func (readyLab) WaitReady(context.Context) error { return nil }

func (readyLab) Refused() error { return errors.New("in memory") }

// still is a source that tells nothing until its context ends.
type still struct{}

func (still) Name() string { return "still" }

func (still) Run(ctx context.Context, _ collect.Sink) error { <-ctx.Done(); return nil }

// narrations keeps what is told on the screen.
type narrations struct {
	mu   sync.Mutex
	list []collect.Narration
}

func (n *narrations) Write(e collect.Event) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if p, ok := e.Payload.(*collect.Narration); ok {
		n.list = append(n.list, *p)
	}
	return nil
}

// TestTheLastWordsStandUntilTheyAreRead plays two chapters with a key for each.
func TestTheLastWordsStandUntilTheyAreRead(t *testing.T) {
	s, err := scenario.Parse("two.yaml", []byte("title: t\nsteps:\n- chapter: one\n- say: first\n- traffic: 5\n- chapter: two\n- say: last\n"))
	if err != nil {
		t.Fatal(err)
	}
	seen := &narrations{}
	rt := live.New(live.Options{Recorders: []live.Recorder{seen}})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- rt.Run(ctx, still{}) }()
	asked := 0
	_, err = scenario.Play(ctx, scenario.Options{
		Scenario: s, Lab: readyLab{}, Runtime: rt,
		Kubeconfig: func() []byte {
			return []byte("{apiVersion: v1, kind: Config, clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}], contexts: [{name: c, context: {cluster: c}}], current-context: c}")
		},
		Next: func(context.Context) error { asked++; return nil },
	})
	cancel()
	if runErr := <-done; err != nil || runErr != nil {
		t.Fatal(err, runErr)
	}
	if asked != 2 {
		t.Errorf("asked for %d keys, want one for the second chapter and one for the end", asked)
	}
	n := len(seen.list)
	if n < 2 || !seen.list[n-1].Ended || !seen.list[n-2].Waiting || seen.list[n-2].Text != "last" {
		t.Errorf("told at the end: %+v", seen.list)
	}
}
