package noderules

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/kconverge/kconverge/collect"
)

// standing is a runner that stands at the namespace's present generation and
// has a receiver that does not read yet.
func standing(t *testing.T, n testNS) (*runner, *collector) {
	t.Helper()
	c := newCollector()
	o := Options{Node: "n", NetNS: n.fd}.withDefaults()
	r := &runner{opts: o, sink: c}
	var err error
	if r.watch, err = openWatch(o); err != nil {
		t.Fatal(err)
	}
	if r.query, err = openQuery(o); err != nil {
		t.Fatal(err)
	}
	if err := r.begin(context.Background()); err != nil {
		t.Fatal(err)
	}
	return r, c
}

func (r *runner) leave(t *testing.T) {
	if err := r.watch.close(); err != nil {
		t.Error(err)
	}
	if err := r.query.close(); err != nil {
		t.Error(err)
	}
}

// received lets the receiver read until the generation's end has come.
func (r *runner) received(t *testing.T, gen uint32) {
	t.Helper()
	r.watch.start()
	for {
		<-r.watch.inbox.ready
		r.backlog = append(r.backlog, r.watch.inbox.take()...)
		for _, p := range r.backlog {
			for _, m := range messages(t, p.data) {
				if m.kind == msgNewGen && m.gen == gen {
					return
				}
			}
		}
	}
}

func kinds(events []collect.Event) string {
	var out []string
	for _, e := range events {
		out = append(out, e.Payload.Type())
	}
	return strings.Join(out, " ")
}

func TestNothingIsVouchedForBeforeTheKernelsGenerationHasArrived(t *testing.T) {
	n := kubeProxyNS(t)
	r, c := standing(t, n)
	defer r.leave(t)
	if got := kinds(c.all()); got != "rules sourcestate vouch" {
		t.Fatalf("at the start: %s", got)
	}
	before := r.tracker.gen
	n.nft(t, "flush chain ip kube-proxy "+oneChain)
	asked := time.Now()
	if err := r.confirm(); err != nil {
		t.Fatal(err)
	}
	if got := kinds(c.all()[3:]); got != "" {
		t.Fatalf("with a generation on its way: %s", got)
	}
	// Asked again it still waits, for the first question.
	if err := r.confirm(); err != nil {
		t.Fatal(err)
	}
	again := time.Now()
	r.received(t, nextGen(before))
	if err := r.work(context.Background()); err != nil {
		t.Fatal(err)
	}
	events := c.all()[3:]
	if got := kinds(events); got != "rules vouch vouch" {
		t.Fatalf("when it has come: %s", got)
	}
	first, second := events[1].Payload.(*collect.Vouch), events[2].Payload.(*collect.Vouch)
	if first.Until.Before(asked) || first.Until.After(again) || first.Generation != nextGen(before) || first.How != "heartbeat" {
		t.Errorf("vouched %+v, asked at %v", first, asked)
	}
	if second.Until.Before(again) {
		t.Errorf("after the generation: vouched until %v, before %v", second.Until, again)
	}
}

func TestAJumpInGenerationsIsAGapLikeAnOverrun(t *testing.T) {
	n := kubeProxyNS(t)
	r, c := standing(t, n)
	defer r.leave(t)
	sure := r.sure
	before := r.tracker.gen
	n.nft(t, "flush chain ip kube-proxy "+oneChain)
	n.nft(t, "add rule ip kube-proxy "+webChain+" meta l4proto tcp dnat to 10.9.9.9:80")
	r.received(t, nextGen(nextGen(before)))
	// What belongs to the first of the two is lost.
	var kept []packet
	lost := true
	for _, p := range r.backlog {
		first := false
		for _, m := range messages(t, p.data) {
			first = first || m.kind == msgNewGen && m.gen == nextGen(before)
		}
		if !lost {
			kept = append(kept, p)
		}
		lost = lost && !first
	}
	r.backlog = kept
	if err := r.work(context.Background()); err != nil {
		t.Fatal(err)
	}
	events := c.all()[3:]
	if got := kinds(events); got != "gap rules gap vouch" {
		t.Fatalf("events: %s", got)
	}
	open, rules, closed := events[0].Payload.(*collect.Gap), events[1].Payload.(*collect.Rules), events[2].Payload.(*collect.Gap)
	if !open.From.Equal(sure) || !open.To.IsZero() || !strings.Contains(open.Why, "came after") {
		t.Errorf("gap %+v, sure until %v", open, sure)
	}
	if !closed.From.Equal(sure) || closed.To != events[1].At || closed.Lost != 2 {
		t.Errorf("gap %+v", closed)
	}
	want := "default/one: TCP IPv4 Cluster [ClusterIP 10.96.0.11:80] ->\n" +
		"default/web:http TCP IPv4 Cluster [ClusterIP 10.96.0.10:80] -> 10.9.9.9:80 10.244.0.3:8080 10.244.1.3:8080 10.244.2.3:8080\n"
	if diff := cmp.Diff(want, render(rules.Ports)); diff != "" || rules.Baseline || !events[1].NotBefore.Equal(sure) {
		t.Errorf("found after the gap, not before %v (-want +got):\n%s", events[1].NotBefore, diff)
	}
}

func TestALossOfWhatIsAlreadyKnownIsNoGap(t *testing.T) {
	n := kubeProxyNS(t)
	r, c := standing(t, n)
	defer r.leave(t)
	r.watch.start()
	now := time.Now()
	r.backlog = []packet{{at: now, lost: "the kernel's receive buffer overflowed"}, {at: now, settled: true}}
	if err := r.work(context.Background()); err != nil {
		t.Fatal(err)
	}
	if got := kinds(c.all()[3:]); got != "" {
		t.Errorf("events: %s", got)
	}
}

func TestWhatCannotBeDecodedIsAGap(t *testing.T) {
	n := kubeProxyNS(t)
	r, c := standing(t, n)
	defer r.leave(t)
	r.watch.start()
	r.backlog = []packet{{at: time.Now(), data: []byte{1, 2, 3}}}
	if err := r.work(context.Background()); err != nil {
		t.Fatal(err)
	}
	if got := kinds(c.all()[3:]); got != "gap gap vouch" {
		t.Errorf("events: %s", got)
	}
}

func TestAFullInboxHoldsTheReceiverUntilThereIsRoom(t *testing.T) {
	b := newInbox()
	if !b.put(packet{data: make([]byte, inboxMax+1)}) {
		t.Fatal("the first packet was refused")
	}
	done := make(chan bool)
	go func() { done <- b.put(packet{data: []byte{1}}) }()
	if got := b.take(); len(got) < 1 {
		t.Fatalf("took %d packets", len(got))
	}
	if !<-done {
		t.Error("refused although there was room")
	}
	go func() {
		for b.put(packet{data: make([]byte, inboxMax)}) {
		}
		done <- false
	}()
	b.close()
	if <-done {
		t.Error("a shut inbox took a packet")
	}
}

// The time of a generation is that of its first notification, not of its last.
func TestAGenerationIsTimedByItsFirstNotification(t *testing.T) {
	n := kubeProxyNS(t)
	r, c := standing(t, n)
	defer r.leave(t)
	before := r.tracker.gen
	n.nft(t, "flush chain ip kube-proxy "+oneChain)
	n.nft(t, "add rule ip kube-proxy "+webChain+" meta l4proto tcp dnat to 10.9.9.9:80")
	r.received(t, nextGen(nextGen(before)))
	// As if each datagram had come a minute after the one before it, in an interval
	// of a second.
	start := r.opts.Clock.Now().Add(time.Hour)
	var want []time.Time
	ended := true
	for i := range r.backlog {
		p := &r.backlog[i]
		p.at = start.Add(time.Duration(i) * time.Minute)
		p.since = p.at.Add(-time.Second)
		if ended {
			want = append(want, p.at)
		}
		ended = false
		for _, m := range messages(t, p.data) {
			ended = ended || m.kind == msgNewGen
		}
	}
	if len(r.backlog) <= len(want) {
		t.Fatalf("%d datagrams of %d generations: none has several", len(r.backlog), len(want))
	}
	if err := r.work(context.Background()); err != nil {
		t.Fatal(err)
	}
	var got []time.Time
	for _, e := range c.all()[3:] {
		if _, ok := e.Payload.(*collect.Rules); ok {
			got = append(got, e.At)
			if e.At.Sub(e.NotBefore) != time.Second {
				t.Errorf("between %s and %s", e.NotBefore, e.At)
			}
		}
	}
	if !cmp.Equal(got, want) {
		t.Errorf("at %v, want %v", got, want)
	}
}
