package nodelog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/collect/agent"
)

const (
	// DefaultNamespace is where the agents run.
	DefaultNamespace = "kconverge"
	// AgentLabel and AgentName mark the agents' pods; Container is the
	// container whose log is followed.
	AgentLabel = "app.kubernetes.io/name"
	AgentName  = "kconverge-agent"
	Container  = "agent"
	// DefaultSince is how far back logs are read.
	DefaultSince = 10 * time.Minute
)

// defaultListEvery is how often the agents' pods are listed. They are not
// watched: get and list are all the rights that are needed.
const defaultListEvery = 10 * time.Second

const (
	retryFirst = 250 * time.Millisecond
	retryMost  = 10 * time.Second
)

// Options configure a Follower.
type Options struct {
	// Config leads to the API server. It is copied.
	Config *rest.Config
	// Elsewhere are the names of nodes whose agents' lines are read another way:
	// pods on them are passed over.
	Elsewhere []string
	// Namespace of the agents; DefaultNamespace when empty.
	Namespace string
	// Advice is what to do where no agent runs; how to start them when empty.
	Advice string
	// Since is how far back logs are read; DefaultSince when 0.
	Since time.Duration
	// Clock is the viewer's; nil means the system's. ReadClock tells how far
	// it may be trusted; nil asks the kernel.
	Clock     collect.Clock
	ReadClock func() collect.NodeClock
	// Causes as in FileOptions.
	Causes *Causes
	// UserAgent for the requests.
	UserAgent string
	// ListEvery is how often pods are listed; 10 s when 0.
	ListEvery time.Duration
}

// Follower finds the agents' pods and follows their logs through the API server.
// It is a collect.Source. It needs get and list of pods and get of pods/log in
// the agents' namespace, and nothing else.
type Follower struct {
	o      Options
	client kubernetes.Interface
	known  *known
	sink   collect.Sink

	mu    sync.Mutex
	nodes map[string]*followed
	said  collect.SourceState
	look  chan struct{} // asks for a list soon
}

var _ collect.Source = (*Follower)(nil)

// NewFollower returns a Follower; nothing is sent before Run.
func NewFollower(o Options) (*Follower, error) {
	if o.Config == nil {
		return nil, errors.New("agents' logs: no configuration given")
	}
	if o.Namespace == "" {
		o.Namespace = DefaultNamespace
	}
	if o.Since <= 0 {
		o.Since = DefaultSince
	}
	if o.Clock == nil {
		o.Clock = collect.SystemClock{}
	}
	if o.ReadClock == nil {
		o.ReadClock = agent.ReadClock
	}
	if o.ListEvery <= 0 {
		o.ListEvery = defaultListEvery
	}
	c := rest.CopyConfig(o.Config)
	// A log is followed for as long as it goes, and there may be a thousand.
	c.Timeout, c.QPS, c.RateLimiter = 0, -1, nil
	c.WarningHandler, c.WarningHandlerWithContext = rest.NoWarnings{}, nil
	if o.UserAgent != "" {
		c.UserAgent = o.UserAgent
	}
	client, err := kubernetes.NewForConfig(c)
	if err != nil {
		return nil, fmt.Errorf("the configuration for %s cannot be used: %w", c.Host, err)
	}
	return &Follower{o: o, client: client, known: newKnown(), nodes: map[string]*followed{}, look: make(chan struct{}, 1)}, nil
}

// Name implements collect.Source.
func (f *Follower) Name() string { return "agents' logs in namespace " + f.o.Namespace }

// Run implements collect.Source. It rides out everything that a server can do,
// as events, and returns nil.
func (f *Follower) Run(ctx context.Context, sink collect.Sink) error {
	f.sink = sink
	var wg sync.WaitGroup
	defer wg.Wait()
	list, tick := time.NewTicker(f.o.ListEvery), time.NewTicker(tickEvery)
	defer list.Stop()
	defer tick.Stop()
	f.list(ctx, &wg)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			f.tick()
			select {
			case <-f.look: // at most once a tick
				f.list(ctx, &wg)
			default:
			}
		case <-list.C:
			f.list(ctx, &wg)
		}
	}
}

func (f *Follower) tick() {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.o.Clock.Now()
	for _, n := range f.nodes {
		n.do(func(s *stream) { s.tick(now) })
	}
}

// say tells how the following is, when that is news.
func (f *Follower) say(s collect.SourceState) {
	if s == f.said {
		return
	}
	f.said = s
	f.sink.Emit(collect.Event{At: f.o.Clock.Now(), Source: collect.SourceAgents, Payload: &s})
}

// target is the pod whose log tells about a node now.
type target struct {
	name string
	uid  types.UID
	// running: its container runs, so that a log can be followed.
	running bool
	why     string // it does not
}

// list finds the agents' pods.
func (f *Follower) list(ctx context.Context, wg *sync.WaitGroup) {
	// The server's cache will do: whatever is missed shows at the next one.
	pods, err := f.client.CoreV1().Pods(f.o.Namespace).List(ctx, metav1.ListOptions{LabelSelector: AgentLabel + "=" + AgentName, ResourceVersion: "0"})
	switch {
	case ctx.Err() != nil:
		return
	case apierrors.IsForbidden(err):
		f.say(collect.SourceState{State: collect.SourceForbidden, Detail: f.forbidden("list pods", err)})
		return
	case err != nil:
		f.say(collect.SourceState{State: collect.SourceBroken, Detail: "the agents' pods cannot be listed: " + collect.Plain(err.Error())})
		return
	}
	found := map[string]*corev1.Pod{}
	for i := range pods.Items {
		p := &pods.Items[i]
		if node := p.Spec.NodeName; node != "" && !slices.Contains(f.o.Elsewhere, node) && newer(found[node], p) {
			found[node] = p
		}
	}
	state := collect.SourceState{State: collect.SourceSynced, Count: len(found)}
	if len(found) == 0 {
		state.Detail = "no agent runs in namespace " + f.o.Namespace + ": " + cmp.Or(f.o.Advice, "start them with: kconverge agent manifest | kubectl apply -f -")
	}
	f.say(state)
	f.mu.Lock()
	defer f.mu.Unlock()
	for node, p := range found {
		n := f.nodes[node]
		if n == nil {
			n = &followed{f: f, node: node, change: make(chan struct{}, 1)}
			n.stream = newStream(node, f.sink, f.known, f.o.Causes, f.o.ReadClock)
			f.nodes[node] = n
			wg.Go(func() { n.run(ctx) })
		}
		n.aim(targetOf(p))
	}
	for node, n := range f.nodes {
		if found[node] == nil {
			n.aim(target{why: "the agent's pod is gone"})
		}
	}
}

// newer reports that b rather than a tells about their node.
func newer(a, b *corev1.Pod) bool {
	switch {
	case a == nil:
		return true
	case (a.DeletionTimestamp == nil) != (b.DeletionTimestamp == nil):
		return b.DeletionTimestamp == nil
	}
	return a.CreationTimestamp.Before(&b.CreationTimestamp)
}

func targetOf(p *corev1.Pod) target {
	t := target{name: p.Name, uid: p.UID}
	for i := range p.Status.ContainerStatuses {
		c := &p.Status.ContainerStatuses[i]
		if c.Name != Container {
			continue
		}
		switch {
		case c.State.Running != nil:
			t.running = true
		case c.State.Waiting != nil:
			t.why = "the agent's container does not run: " + c.State.Waiting.Reason
		case c.State.Terminated != nil:
			t.why = fmt.Sprintf("the agent's container ended with exit code %d: %s", c.State.Terminated.ExitCode, c.State.Terminated.Reason)
		}
	}
	if !t.running && t.why == "" {
		t.why = "the agent's container has not started"
	}
	t.why = collect.Plain(t.why)
	return t
}

func (f *Follower) forbidden(what string, err error) string {
	var why string
	if s := apierrors.APIStatus(nil); errors.As(err, &s) {
		why = " (" + collect.Plain(s.Status().Message) + ")"
	}
	return fmt.Sprintf("not allowed to %s in namespace %s%s; ask for the Role that kconverge info --rbac prints, or do without with --agents=false", what, f.o.Namespace, why)
}

// followed is one node whose agent is followed.
type followed struct {
	f      *Follower
	node   string
	change chan struct{} // the target changed

	mu     sync.Mutex
	stream *stream
	target target
	cancel context.CancelFunc // of the request that follows the log
}

func (n *followed) do(f func(*stream)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	f(n.stream)
}

// aim says which pod to follow. Another one ends the following of the one
// before.
func (n *followed) aim(t target) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if t == n.target {
		return
	}
	if t.uid != n.target.uid && n.cancel != nil {
		n.cancel()
	}
	n.target = t
	select {
	case n.change <- struct{}{}:
	default:
	}
}

func (n *followed) aimed() target {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.target
}

// run follows whatever pod is the node's, until ctx ends.
func (n *followed) run(ctx context.Context) {
	var last types.UID
	var said string // why nothing runs
	wait := retryFirst
	for ctx.Err() == nil {
		t := n.aimed()
		pause := retryMost
		if t.running {
			if t.uid != last {
				wait = retryFirst
			}
			lines, err := n.follow(ctx, t, t.uid == last)
			last = t.uid
			if ctx.Err() != nil {
				return
			}
			if lines > 0 {
				wait = retryFirst
			}
			n.f.lookAgain()
			n.broke(t, err)
			pause = wait/2 + rand.N(wait)
			wait = min(2*wait, retryMost)
			said = ""
		} else if t.why != said {
			if said == "" && t.uid == last && n.rest(ctx, t) {
				n.f.lookAgain() // it runs again
			} else {
				n.do(func(s *stream) { s.ended(n.f.o.Clock.Now(), t.why) })
				said = t.why
			}
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-n.change:
		}
		timer.Stop()
	}
}

// lookAgain asks for a list of pods soon: one of them ended.
func (f *Follower) lookAgain() {
	select {
	case f.look <- struct{}{}:
	default:
	}
}

// broke tells what a log that ended means.
func (n *followed) broke(t target, err error) {
	n.do(func(s *stream) {
		now := n.f.o.Clock.Now()
		switch {
		case apierrors.IsForbidden(err):
			s.present(now)
			s.emit(now, time.Time{}, &collect.SourceState{State: collect.SourceForbidden, Detail: n.f.forbidden("read the logs of pods", err)})
		case err != nil:
			s.present(now)
			s.interrupt(fmt.Sprintf("the log of pod %s cannot be followed: %s", t.name, collect.Plain(err.Error())))
			if !s.whole {
				s.emit(now, time.Time{}, &collect.SourceState{State: collect.SourceBroken, Detail: "the log of pod " + t.name + " cannot be read: " + collect.Plain(err.Error())})
			}
		}
	})
}
