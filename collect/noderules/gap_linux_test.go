package noderules

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/kconverge/kconverge/collect"
)

// gate is a clock that can be held: the receiver reads it after every datagram,
// so holding it lets the kernel's buffer fill.
type gate struct{ mu sync.Mutex }

func (g *gate) Now() time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	return time.Now()
}

func TestAnOverrunIsOneGapAndTheStateIsRightAfterwards(t *testing.T) {
	n := kubeProxyNS(t)
	clock := &gate{}
	s, c := start(t, Options{Node: "n", NetNS: n.fd, Clock: clock, ReceiveBuffer: 4096})
	c.wait(t, 0, isSynced)
	vouched(t, n, s, c)
	sure := time.Time{}
	for _, e := range c.all() {
		if v, ok := e.Payload.(*collect.Vouch); ok {
			sure = v.Until
		}
	}
	from := len(c.all())

	clock.mu.Lock()
	var b strings.Builder
	for i := range 50 {
		base := fmt.Sprintf("bulk/svc%d/tcp/http", i)
		name := chainName("service", base)
		fmt.Fprintf(&b, "add chain ip kube-proxy %s\nadd element ip kube-proxy service-ips { 10.96.9.%d . tcp . 80 : goto %s }\n", name, i, name)
		fmt.Fprintf(&b, "add rule ip kube-proxy %s meta l4proto tcp dnat to 10.244.9.%d:80\n", name, i)
	}
	n.nft(t, b.String())
	n.nft(t, "flush chain ip kube-proxy "+oneChain)
	clock.mu.Unlock()

	vouched(t, n, s, c)
	var open, closed []*collect.Gap
	var rules []collect.Event
	for _, e := range c.all()[from:] {
		switch p := e.Payload.(type) {
		case *collect.Gap:
			if p.To.IsZero() {
				open = append(open, p)
			} else {
				closed = append(closed, p)
			}
		case *collect.Rules:
			rules = append(rules, e)
		}
	}
	if len(open) != 1 || len(closed) != 1 || len(rules) != 1 {
		t.Fatalf("%d gaps opened, %d closed, %d Rules events, want one each", len(open), len(closed), len(rules))
	}
	if !strings.Contains(open[0].Why, "overflowed") || open[0].From.Before(sure) || closed[0].From != open[0].From || !closed[0].To.After(closed[0].From) || closed[0].Lost != 2 {
		t.Errorf("gap %+v, then %+v; sure until %v", open[0], closed[0], sure)
	}
	r := rules[0].Payload.(*collect.Rules)
	if r.Baseline || len(r.Ports) != 51 || rules[0].NotBefore != open[0].From || rules[0].At != closed[0].To {
		t.Errorf("%d ports changed in [%v, %v], want 51 in [%v, %v]", len(r.Ports), rules[0].NotBefore, rules[0].At, open[0].From, closed[0].To)
	}
	fresh, err := Read(context.Background(), Options{NetNS: n.fd})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(render(fresh.Ports), render(state(c.all()))); diff != "" {
		t.Errorf("(-fresh dump +followed):\n%s", diff)
	}
	// And what follows is followed.
	if r := step(t, n, s, c, "add rule ip kube-proxy "+oneChain+" meta l4proto tcp dnat to 10.244.0.4:8080"); r == nil || len(r.Ports) != 1 {
		t.Errorf("after the gap: %+v", r)
	}
}

func TestARenamedChainIsAGap(t *testing.T) {
	n := kubeProxyNS(t)
	s, c := start(t, Options{Node: "n", NetNS: n.fd})
	c.wait(t, 0, isSynced)
	n.nft(t, "rename chain ip kube-proxy "+webChain+" "+chainName("service", "default/web2/tcp/http"))
	vouched(t, n, s, c)
	_, i := c.wait(t, 0, func(e collect.Event) bool {
		g, ok := e.Payload.(*collect.Gap)
		return ok && !g.To.IsZero()
	})
	events := c.all()[:i+1]
	fresh, err := Read(context.Background(), Options{NetNS: n.fd})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(render(fresh.Ports), render(state(events))); diff != "" {
		t.Errorf("(-fresh dump +followed):\n%s", diff)
	}
	if wantPort(t, fresh.Ports, "web2") == "" || wantPort(t, fresh.Ports, "web") != "" {
		t.Errorf("ports\n%s", render(fresh.Ports))
	}
}

func TestNoEventGoesBackInTimeAndNoVouchGoesTooFar(t *testing.T) {
	n := kubeProxyNS(t)
	s, c := start(t, Options{Node: "n", NetNS: n.fd, Heartbeat: time.Millisecond})
	c.wait(t, 0, isSynced)
	// done[i] is a moment at which the i-th change had been committed.
	var done []time.Time
	for i := range 40 {
		n.nft(t, fmt.Sprintf("flush chain ip kube-proxy %s\nadd rule ip kube-proxy %s meta l4proto tcp dnat to 10.244.7.%d:80", oneChain, oneChain, i+1))
		done = append(done, time.Now())
	}
	vouched(t, n, s, c)
	last, until, seen := time.Time{}, time.Time{}, 0
	for _, e := range c.all() {
		if e.At.Before(last) {
			t.Errorf("%s at %v after an event at %v", e.Payload.Type(), e.At, last)
		}
		last = e.At
		switch p := e.Payload.(type) {
		case *collect.Vouch:
			if p.Until.Before(until) {
				t.Errorf("vouched until %v after %v", p.Until, until)
			}
			until = p.Until
			if seen < len(done) && done[seen].Before(until) {
				t.Errorf("vouched until %v with %d changes told; change %d was committed by %v", until, seen, seen+1, done[seen])
			}
		case *collect.Rules:
			if !p.Baseline {
				seen++
			}
		}
	}
	if seen != len(done) {
		t.Errorf("%d changes told, %d made", seen, len(done))
	}
}
