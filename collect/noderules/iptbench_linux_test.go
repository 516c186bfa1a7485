package noderules

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// iptMany has three endpoints each.
func iptMany(n int) []*iptService {
	var out []*iptService
	for i := range n {
		s := &iptService{name: fmt.Sprintf("ns%d/svc%d", i%10, i), port: "http", proto: "tcp", vip: fmt.Sprintf("10.96.%d.%d", i/250, i%250+1)}
		for j := range 3 {
			s.endpoints = append(s.endpoints, fmt.Sprintf("10.%d.%d.%d:8080", 100+j, i/250, i%250+1))
		}
		out = append(out, s)
	}
	return out
}

// BenchmarkIPTablesOneChangeOf1000 is one sync of kube-proxy in which one of 1,000
// Services has another endpoint: KUBE-SERVICES is written anew as a whole. The
// measure is what the follower spends on it, without the writer: decoding the
// notifications and resolving, or one look at the legacy tables. heap-MB is what
// it keeps.
func BenchmarkIPTablesOneChangeOf1000(b *testing.B) {
	for _, k := range iptKinds {
		b.Run(k.layout, func(b *testing.B) {
			n := newNS(b)
			services := iptMany(1000)
			n.restore(b, k.program, "iptables-restore", iptBase)
			n.restore(b, k.program, "iptables-restore", iptRules(true, services...))
			o := Options{NetNS: n.fd}.withDefaults()
			heap := func() float64 {
				var m runtime.MemStats
				runtime.GC()
				runtime.ReadMemStats(&m)
				return float64(m.HeapAlloc) / (1 << 20)
			}
			before := heap()
			w, err := openWatch(o)
			if err != nil {
				b.Fatal(err)
			}
			q, err := openQuery(o)
			if err != nil {
				b.Fatal(err)
			}
			l, err := openLegacy(o)
			if err != nil {
				b.Fatal(err)
			}
			r := &runner{opts: o, sink: newCollector(), watch: w, query: q}
			if k.program == "xtables-legacy-multi" {
				r.legacy = l
			}
			w.start()
			if err := r.begin(context.Background()); err != nil {
				b.Fatal(err)
			}
			if len(r.tracker.ports()) != 1000 {
				b.Fatalf("%d ports", len(r.tracker.ports()))
			}
			b.ReportMetric(heap()-before, "heap-MB")
			for i := range b.N {
				b.StopTimer()
				s := services[i%len(services)]
				s.endpoints[0] = fmt.Sprintf("10.99.%d.%d:8080", i/250%250, i%250+1)
				n.restore(b, k.program, "iptables-restore", partialSync(services, s))
				gen, err := q.generation()
				if err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
				if r.legacy != nil {
					r.look()
				}
				for r.legacy == nil && r.tracker.gen != gen {
					<-w.inbox.ready
					if err := r.work(context.Background()); err != nil {
						b.Fatal(err)
					}
				}
			}
			b.StopTimer()
			if err := w.close(); err != nil {
				b.Error(err)
			}
			q.close()
			l.close()
		})
	}
}

// partialSync writes the addresses of all Services and the chains of one.
func partialSync(all []*iptService, changed *iptService) string {
	whole := iptRules(true, changed)
	head, tail, _ := strings.Cut(whole, "*nat\n")
	var catch strings.Builder
	for _, s := range all {
		if s != changed {
			fmt.Fprintf(&catch, "-A KUBE-SERVICES -m comment --comment \"%s cluster IP\" -m tcp -p tcp -d %s --dport 80 -j KUBE-SVC-%s\n", s.portName(), s.vip, s.hash(""))
		}
	}
	return head + "*nat\n" + strings.Replace(tail, "-A KUBE-MARK-MASQ", catch.String()+"-A KUBE-MARK-MASQ", 1)
}
