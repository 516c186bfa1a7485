package timeline

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/kconverge/kconverge/collect"
)

// ingest makes events of one kind, which change something each time.
type ingest struct {
	kind string
	make func(i int) collect.Event
}

// ingests are the kinds of events, about Service svc0 of a benchCluster.
func ingests(nodes int) []ingest {
	object := func(src collect.SourceID, kind, ns, name string, p collect.Payload) collect.Event {
		return collect.Event{Source: src, Op: collect.OpModified, UID: "u-" + name, ResourceVersion: 1, Object: collect.ObjectKey{Kind: kind, Namespace: ns, Name: name}, Payload: p}
	}
	_, loop := benchCluster(1, nodes)
	half := len(loop) / 2 // down, then up
	pick := func(n int) func(int) collect.Event {
		return func(i int) collect.Event { return loop[n+i%2*half] }
	}
	node := func(ready func(i int) bool) func(int) collect.Event {
		return func(i int) collect.Event {
			return object(collect.SourceNodes, "Node", "", "n1", &collect.Node{Labels: map[string]string{"i": fmt.Sprint(i % 2)}, Ready: &collect.Condition{Status: ready(i)}})
		}
	}
	told := func(src collect.SourceID, p func(i int) collect.Payload) func(int) collect.Event {
		return func(i int) collect.Event { return collect.Event{Source: src, Payload: p(i)} }
	}
	return []ingest{
		{"pod", pick(0)},
		{"slice", pick(1)},
		{"rules", pick(2)},
		{"service", func(i int) collect.Event {
			_, c := benchService("svc0")
			c.Ports[0].Target = 8080 + int32(i%2)
			return object(collect.SourceServices, "Service", "default", "svc0", c)
		}},
		{"endpoints", func(i int) collect.Event {
			e := &collect.Endpoints{}
			for _, x := range loop[1].Payload.(*collect.EndpointSlice).Endpoints[i%2:] {
				e.Addresses = append(e.Addresses, collect.EndpointsAddress{IP: x.Address, Ready: true, PodName: x.PodName, PodUID: x.PodUID, Ports: []collect.SlicePort{{Protocol: collect.TCP, Port: 8080}}})
			}
			return object(collect.SourceEndpoints, "Endpoints", "default", "svc0", e)
		}},
		{"node", node(func(int) bool { return true })},
		{"workload", func(i int) collect.Event {
			return object(collect.SourceDeployments, "Deployment", "default", "svc0", &collect.Workload{Generation: int64(i), Replicas: int32(10 + i%2), TemplateLabels: map[string]string{"app": "svc0"}, Selector: map[string]string{"app": "svc0"}})
		}},
		{"kube event", func(i int) collect.Event {
			return object(collect.SourceKubeEvents, "Event", "default", fmt.Sprintf("e%d", i), &collect.KubeEvent{Regarding: collect.ObjectKey{Kind: "Pod", Namespace: "default", Name: "svc0-0"}, UID: "u-svc0-0", Reason: "Unhealthy", Message: "Readiness probe failed"})
		}},
		{"vouch", func(i int) collect.Event {
			e := loop[2]
			e.Payload = &collect.Vouch{How: "heartbeat", Until: epoch.Add(time.Duration(i) * time.Millisecond)}
			return e
		}},
		{"agent", told("agent/n1", func(i int) collect.Payload {
			return &collect.AgentState{Node: "n1", Uptime: time.Duration(i) * time.Second}
		})},
		{"proxy", told("agent/n1", func(i int) collect.Payload { return &collect.ProxyState{Node: "n1", SyncCount: uint64(i)} })},
		{"clock bound", told("rules/n1", func(i int) collect.Payload { return &collect.ClockBound{Error: time.Duration(i%2) * time.Millisecond} })},
		{"sync step", told("engine/rulesync/n1", func(i int) collect.Payload { return &collect.SyncStep{Node: "n1", Step: "synced"} })},
		{"action", told(collect.SourceUser, func(i int) collect.Payload {
			return &collect.Action{Namespace: "default", Service: "svc0", Text: "scale"}
		})},
		{"advance", told(collect.SourceClock, func(i int) collect.Payload { return &collect.Advance{} })},
	}
}

// feeder gives a model one event of a kind after the other, a tenth of a
// millisecond apart.
type feeder struct {
	m    *Model
	at   time.Time
	rv   uint64
	i    int
	make func(int) collect.Event
}

func newFeeder(m *Model, in ingest) *feeder {
	return &feeder{m: m, at: m.now.Add(time.Second), rv: m.maxRV + 1_000_000, make: in.make}
}

func (f *feeder) next() collect.Event {
	e := f.make(f.i)
	f.i++
	f.at = f.at.Add(100 * time.Microsecond)
	e.At = f.at
	if e.ResourceVersion != 0 {
		f.rv++
		e.ResourceVersion = f.rv
	}
	return e
}

// BenchmarkIngest measures one event of each kind in a cluster of 100 Services
// with ten endpoints each on ten nodes. Here and below the benchmark's own making of
// the event is part of it.
func BenchmarkIngest(b *testing.B) {
	const nodes = 10
	for _, in := range ingests(nodes) {
		b.Run(in.kind, func(b *testing.B) {
			m, _ := benchCluster(100, nodes)
			f := newFeeder(m, in)
			b.ReportAllocs()
			for b.Loop() {
				m.Apply(f.next())
			}
		})
	}
}

// BenchmarkIngestAmongMany puts the cost of an event among 10,000 Services beside
// that among 100, in the same run (medians): it follows the Services that it touches, so
// that the ratio is about 1, but for the caches of the machine.
func BenchmarkIngestAmongMany(b *testing.B) {
	const nodes = 3
	var models [2]*Model
	for i, services := range []int{100, 10_000} {
		models[i], _ = benchCluster(services, nodes)
	}
	for _, in := range ingests(nodes) {
		b.Run(in.kind, func(b *testing.B) {
			var feeders [2]*feeder
			var took [2][]time.Duration
			for i, m := range models {
				feeders[i] = newFeeder(m, in)
			}
			for b.Loop() {
				for i, f := range feeders {
					e := f.next()
					began := time.Now()
					f.m.Apply(e)
					took[i] = append(took[i], time.Since(began))
				}
			}
			var median [2]float64 // the machine may do other things meanwhile
			for i := range took {
				slices.Sort(took[i])
				median[i] = float64(took[i][len(took[i])/2].Nanoseconds())
			}
			b.ReportMetric(median[0], "ns/event-of-100")
			b.ReportMetric(median[1], "ns/event-of-10000")
			b.ReportMetric(median[1]/median[0], "ratio")
			b.ReportMetric(0, "ns/op") // of both together it says nothing
		})
	}
}
