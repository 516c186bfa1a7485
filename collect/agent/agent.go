package agent

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"reflect"
	"sync"
	"time"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/collect/noderules"
)

// Defaults of Options.
const (
	DefaultHeartbeat = 10 * time.Second
	DefaultKeyframe  = time.Minute
)

// retryAfter is how long the agent waits before it reads the rules anew, after
// reading them broke off.
const retryAfter = 5 * time.Second

// Options configure an Agent.
type Options struct {
	// Node is the node's name in events.
	Node string
	// Version of the program, for the first line.
	Version string
	// Heartbeat and Keyframe are how often each is printed; 0 means the
	// default.
	Heartbeat, Keyframe time.Duration
	// ProxyMetrics and ProxyHealth are where the local kube-proxy answers,
	// as http://HOST:PORT; an empty ProxyMetrics asks nobody.
	ProxyMetrics, ProxyHealth string
	// Rules reads the node's rules; nil reads those of the namespace that
	// the program runs in. It is asked for a new Source each time that
	// reading has to start anew.
	Rules func() collect.Source
	// Clock stamps what the agent itself says; nil means the system's.
	Clock collect.Clock
	// ReadClock tells how far the clock may be trusted; nil asks the kernel.
	ReadClock func() collect.NodeClock
}

// Run prints lines to out until ctx ends, and then a last one that says so. It
// returns an error when nothing can be read or written any more: it names what
// was tried and the way out. out is written to by one goroutine, a line at a
// time.
func Run(ctx context.Context, o Options, out io.Writer) error {
	a, err := newAgent(o)
	if err != nil {
		return err
	}
	return a.run(ctx, out)
}

type agent struct {
	o     Options
	queue *queue
	head  collect.AgentState
	start time.Time // with the monotonic reading
}

func newAgent(o Options) (*agent, error) {
	if o.Node == "" {
		return nil, errors.New("the node's name is not known: give it with --node or NODE_NAME")
	}
	if o.Heartbeat <= 0 {
		o.Heartbeat = DefaultHeartbeat
	}
	if o.Keyframe <= 0 {
		o.Keyframe = DefaultKeyframe
	}
	if o.Clock == nil {
		o.Clock = collect.SystemClock{}
	}
	if o.ReadClock == nil {
		o.ReadClock = ReadClock
	}
	if o.Rules == nil {
		o.Rules = func() collect.Source {
			return noderules.New(noderules.Options{Node: o.Node, Heartbeat: o.Heartbeat, Clock: o.Clock})
		}
	}
	id := make([]byte, 4)
	rand.Read(id) // never fails
	return &agent{
		start: time.Now(),
		o:     o, queue: newQueue(o.Node, o.Clock, queueLimit),
		head: collect.AgentState{
			Node: o.Node, Version: o.Version, Instance: hex.EncodeToString(id), Started: o.Clock.Now().UTC(),
			Heartbeat: o.Heartbeat, Keyframe: o.Keyframe,
		},
	}, nil
}

func (a *agent) run(ctx context.Context, out io.Writer) error {
	// A failure of one part ends the others.
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	a.hello()
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := a.readRules(ctx); err != nil {
			fail(err)
		}
	})
	wg.Go(func() { a.beat(ctx) })
	if a.o.ProxyMetrics != "" {
		wg.Go(func() { a.askProxy(ctx) })
	}
	printed := make(chan error, 1)
	go func() {
		err := a.print(out)
		printed <- err
		if err != nil {
			fail(err)
		}
	}()
	<-ctx.Done()
	wg.Wait()
	cause := context.Cause(ctx)
	why := "the agent was told to stop"
	if !errors.Is(cause, context.Canceled) {
		why = "the agent gave up: " + cause.Error()
	}
	a.say(collect.RulesSource(a.o.Node), &collect.SourceState{State: collect.SourceStopped, Detail: why})
	a.queue.close()
	// A reader that does not read must not keep the agent from ending.
	select {
	case err := <-printed:
		if err != nil {
			return err
		}
	case <-time.After(lastWords):
	}
	if errors.Is(cause, context.Canceled) {
		return nil
	}
	return cause
}

// lastWords is how long the last lines may take to be written.
const lastWords = 2 * time.Second

func (a *agent) say(source collect.SourceID, p collect.Payload) {
	a.queue.Emit(collect.Event{
		At: a.o.Clock.Now(), Source: source, Object: collect.ObjectKey{Kind: "Node", Name: a.o.Node}, Payload: p,
	})
}

// hello says who prints, and how the clock is.
func (a *agent) hello() {
	s := a.head
	s.Clock, s.Uptime = a.o.ReadClock(), time.Since(a.start)
	a.say(collect.AgentSource(a.o.Node), &s)
}

// readRules reads the rules until ctx ends. What is forbidden stays so; all
// else is tried again.
func (a *agent) readRules(ctx context.Context) error {
	for {
		var forbidden bool
		err := a.o.Rules().Run(ctx, collect.SinkFunc(func(e collect.Event) {
			if s, ok := e.Payload.(*collect.SourceState); ok && s.State == collect.SourceForbidden {
				forbidden = true
			}
			a.queue.Emit(e)
		}))
		var never *noderules.UnsupportedError
		switch {
		case ctx.Err() != nil:
			return nil
		case forbidden, errors.As(err, &never):
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(retryAfter):
		}
	}
}

// beat says that the agent lives, and from time to time everything there is.
func (a *agent) beat(ctx context.Context) {
	beat, frame := time.NewTicker(a.o.Heartbeat), time.NewTicker(a.o.Keyframe)
	defer beat.Stop()
	defer frame.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-beat.C:
			a.hello()
		case <-frame.C:
			a.queue.keyframe()
		}
	}
}

// askProxy asks the local kube-proxy with every heartbeat and tells what is new.
func (a *agent) askProxy(ctx context.Context) {
	p := &proxy{node: a.o.Node, metrics: a.o.ProxyMetrics, health: a.o.ProxyHealth}
	beat := time.NewTicker(a.o.Heartbeat)
	defer beat.Stop()
	var last *collect.ProxyState
	for {
		s := p.ask(ctx)
		if ctx.Err() != nil {
			return
		}
		if last == nil || !reflect.DeepEqual(s, last) {
			a.say(collect.AgentSource(a.o.Node), s)
			last = s
		}
		select {
		case <-ctx.Done():
			return
		case <-beat.C:
		}
	}
}

// print writes what waits until the queue is closed and empty.
func (a *agent) print(out io.Writer) error {
	w := collect.NewWriter(out)
	var seq uint64
	for {
		events, done := a.queue.take()
		if done {
			return nil
		}
		for i := range events {
			lines, err := split(events[i])
			if err != nil {
				return err
			}
			for _, e := range lines {
				seq++
				e.Seq = seq
				if err := w.Write(e); err != nil {
					return fmt.Errorf("nobody reads the agent's lines any more: %w", err)
				}
			}
			events[i] = collect.Event{}
		}
		if len(events) == 0 {
			<-a.queue.wake
		}
	}
}
