package nodelog

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/kconverge/kconverge/collect"
)

// world is a node with a clock of its own, beside a viewer. True time is the
// viewer's.
type world struct {
	offset  time.Duration // node minus viewer, at start
	ppm     float64
	start   time.Time
	rng     *rand.Rand
	maxErr  time.Duration
	synced  bool
	stepped time.Duration
}

// node brings a true time to the node's clock.
func (w *world) node(t time.Time) time.Time {
	d := t.Sub(w.start)
	return t.Add(w.offset + w.stepped + time.Duration(float64(d)*w.ppm/1e6))
}

// delayed is how long a line takes to the viewer: at least 200 ms.
func (w *world) delayed() time.Duration {
	d := 200*time.Millisecond + time.Duration(w.rng.ExpFloat64()*float64(20*time.Millisecond))
	if w.rng.IntN(50) == 0 {
		d += time.Duration(w.rng.IntN(2000)) * time.Millisecond // a stutter
	}
	return d
}

func (w *world) clock() collect.NodeClock {
	return collect.NodeClock{Synchronised: w.synced, MaxError: w.maxErr}
}

func webPort(addrs ...netip.AddrPort) collect.RulePort {
	slices.SortFunc(addrs, netip.AddrPort.Compare)
	return collect.RulePort{
		RulePortKey: collect.RulePortKey{Namespace: "default", Service: "web", Protocol: collect.TCP, Family: collect.IPv4, Policy: collect.PolicyCluster},
		Frontends:   []collect.Frontend{{Kind: collect.FrontendClusterIP, Addr: netip.MustParseAddrPort("10.96.0.1:80")}},
		Endpoints:   addrs,
	}
}

// outcome is one change: when it was published and truly reached the rules, and
// what came out.
type outcome struct {
	published, truly, at, notBefore time.Time
	clock                           collect.ClockBound
}

// changes runs n additions of an endpoint through a stream, each published in a
// slice and written to the node's rules up to a second later.
func (w *world) changes(t *testing.T, n int) []outcome {
	t.Helper()
	var clock collect.ClockBound
	var out []outcome
	got := map[uint32]outcome{}
	sink := collect.SinkFunc(func(e collect.Event) {
		switch p := e.Payload.(type) {
		case *collect.ClockBound:
			clock = *p
		case *collect.Rules:
			got[p.Generation] = outcome{at: e.At, notBefore: e.NotBefore, clock: clock}
		}
	})
	causes := NewCauses()
	viewer := w.clock()
	s := newStream("node-1", sink, newKnown(), causes, func() collect.NodeClock { return viewer })
	seq := uint64(0)
	line := func(truly, at time.Time, source collect.SourceID, p collect.Payload) {
		seq++
		s.line(collect.Event{Seq: seq, At: w.node(truly), Source: source, Payload: p}, at)
	}
	at := w.start
	hello := func(truly, at time.Time) {
		line(truly, at, collect.AgentSource("node-1"), &collect.AgentState{
			Node: "node-1", Instance: "1", Started: w.node(w.start), Uptime: truly.Sub(w.start), Heartbeat: 10 * time.Second, Clock: w.clock(),
		})
	}
	read := at
	hello(at, at.Add(w.delayed()))
	line(at, at.Add(w.delayed()), collect.RulesSource("node-1"), &collect.Rules{Node: "node-1", Generation: 1, Baseline: true, Ports: []collect.RulePort{webPort()}})
	s.present(at.Add(3 * time.Second))
	read = at.Add(3 * time.Second)
	at = read
	var addrs []netip.AddrPort
	var slice collect.EndpointSlice
	slice.Service, slice.Family, slice.Ports = "web", collect.IPv4, []collect.SlicePort{{Protocol: collect.TCP, Port: 8080}}
	key := collect.ObjectKey{Kind: "EndpointSlice", Namespace: "default", Name: "web-1"}
	causes.Emit(collect.Event{At: at, Object: key, Op: collect.OpListed, Payload: &slice})
	for i := range n {
		at = at.Add(time.Duration(50+w.rng.IntN(3000)) * time.Millisecond)
		addr := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 244, byte(i >> 8), byte(i)}), 8080)
		next := slice
		next.Endpoints = append(slices.Clone(slice.Endpoints), collect.SliceEndpoint{Address: addr.Addr(), Ready: true, Serving: true})
		if len(next.Endpoints) > 5 {
			next.Endpoints = next.Endpoints[1:]
		}
		slice = next
		causes.Emit(collect.Event{At: at, Object: key, Op: collect.OpModified, Payload: &next})
		// kube-proxy: a few milliseconds, or up to its minimum sync period.
		took := time.Duration(5+w.rng.IntN(40)) * time.Millisecond
		if w.rng.IntN(2) == 0 {
			took += time.Duration(w.rng.IntN(1000)) * time.Millisecond
		}
		truly := at.Add(took)
		if addrs = append(slices.Clone(addrs), addr); len(addrs) > 5 {
			addrs = addrs[1:]
		}
		// Lines of one log come in order.
		if r := truly.Add(w.delayed()); r.After(read) {
			read = r
		}
		if i%10 == 9 {
			hello(truly, read)
		}
		line(truly, read, collect.RulesSource("node-1"), &collect.Rules{Node: "node-1", Generation: uint32(i + 2), Ports: []collect.RulePort{webPort(slices.Clone(addrs)...)}})
		o, ok := got[uint32(i+2)]
		if !ok {
			t.Fatalf("change %d did not come out", i)
		}
		o.published, o.truly = at, truly
		out = append(out, o)
		at = truly
	}
	return out
}

func (o outcome) inside() bool {
	lag, truly := o.at.Sub(o.published), o.truly.Sub(o.published)
	if o.clock.OneSided {
		return truly <= lag && truly >= 0
	}
	return (lag - truly).Abs() <= o.clock.Error
}

// The true lag lies inside the stated error with clocks that are three seconds
// apart, drift, and lines that take 200 ms and more.
func TestTheTrueLagLiesInsideTheStatedError(t *testing.T) {
	const n = 1000
	for _, c := range []struct {
		name   string
		world  world
		median time.Duration // no more than that
	}{
		{"ahead", world{offset: 3 * time.Second, ppm: 50}, 400 * time.Millisecond},
		{"behind", world{offset: -3 * time.Second, ppm: -50}, 400 * time.Millisecond},
		{"synchronised", world{offset: 4 * time.Millisecond, synced: true, maxErr: 5 * time.Millisecond}, 20 * time.Millisecond},
		{"synchronised by its own word only", world{offset: 3 * time.Second, ppm: 50, synced: true, maxErr: 5 * time.Millisecond}, 400 * time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := c.world
			w.start, w.rng = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), rand.New(rand.NewPCG(1, 2))
			all := w.changes(t, n)
			inside := 0
			var errs []time.Duration
			for _, o := range all {
				if o.inside() {
					inside++
				}
				errs = append(errs, o.clock.Error)
			}
			slices.SortFunc(errs, cmp.Compare[time.Duration])
			t.Logf("%d of %d inside; stated error: median %s, worst %s (%s)", inside, n, errs[n/2], errs[n-1], all[n-1].clock.How)
			if inside < n*99/100 {
				t.Errorf("%d of %d true lags lie inside the stated error", inside, n)
			}
			if errs[n/2] > c.median || errs[n/2] == 0 {
				t.Errorf("the median stated error is %s", errs[n/2])
			}
		})
	}
}

// A clock that is set is noticed at the next heartbeat, said, and the bound
// starts anew.
func TestAClockThatIsSetIsSaid(t *testing.T) {
	for _, step := range []time.Duration{5 * time.Second, -5 * time.Second} {
		t.Run(fmt.Sprint(step), func(t *testing.T) {
			w := world{start: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), rng: rand.New(rand.NewPCG(1, 2))}
			var gaps []*collect.Gap
			var vouched time.Time
			s := newStream("node-1", collect.SinkFunc(func(e collect.Event) {
				switch p := e.Payload.(type) {
				case *collect.Gap:
					gaps = append(gaps, p)
				case *collect.Vouch:
					vouched = p.Until
				}
			}), newKnown(), nil, func() collect.NodeClock { return collect.NodeClock{} })
			seq := uint64(0)
			beat := func(truly time.Time) {
				for _, p := range []collect.Payload{
					&collect.AgentState{Node: "node-1", Instance: "1", Started: w.start, Uptime: truly.Sub(w.start), Heartbeat: 10 * time.Second},
					&collect.Rules{Node: "node-1", Generation: 1, Baseline: true},
					&collect.Vouch{Until: w.node(truly), How: "heartbeat", Generation: 1},
				} {
					if seq > 2 {
						if _, rules := p.(*collect.Rules); rules {
							continue
						}
					}
					seq++
					s.line(collect.Event{Seq: seq, At: w.node(truly), Payload: p}, truly.Add(20*time.Millisecond))
				}
			}
			at := w.start.Add(10 * time.Second)
			beat(at)
			s.present(at.Add(100 * time.Millisecond))
			beat(at.Add(10 * time.Second))
			if len(gaps) > 0 {
				t.Fatalf("a gap before the clock was set: %+v", gaps[0])
			}
			w.stepped = step
			at = at.Add(20 * time.Second)
			beat(at)
			if len(gaps) != 1 || gaps[0].To.IsZero() {
				t.Fatalf("gaps %+v, want one closed", gaps)
			}
			if d := vouched.Sub(at).Abs(); d > 50*time.Millisecond {
				t.Errorf("after the clock was set by %s the vouch is off by %s", step, d)
			}
		})
	}
}
