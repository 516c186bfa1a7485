package lanes_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/kconverge/kconverge/engine/lanes"
	"github.com/kconverge/kconverge/engine/lanes/lanestest"
	"github.com/kconverge/kconverge/engine/timeline"
)

// manyNodes is Web on n nodes, each with lags of its own.
func manyNodes(n int) *timeline.Snapshot {
	spec := lanestest.Web(10600 * time.Millisecond)
	spec.Nodes = nil
	for i := 0; i < n; i++ {
		spec.Nodes = append(spec.Nodes, fmt.Sprintf("node-%04d", i))
	}
	for i := range spec.Pods {
		for _, l := range []*lanestest.Lags{&spec.Pods[i].Add, &spec.Pods[i].Remove} {
			if l.Nodes == nil {
				continue
			}
			l.Nodes = map[string]time.Duration{}
			for k, name := range spec.Nodes {
				l.Nodes[name] = time.Duration(100+k*1700/n) * time.Millisecond
			}
		}
	}
	return spec.Snapshot()
}

func BenchmarkBuild(b *testing.B) {
	for _, n := range []int{3, 100, 1000} {
		b.Run(fmt.Sprintf("nodes=%d", n), func(b *testing.B) {
			snap := manyNodes(n)
			svc := snap.Services[0]
			b.ReportAllocs()
			for b.Loop() {
				p := lanes.Build(snap, svc, lanes.Options{Cols: 146, Cell: 100 * time.Millisecond, FoldQuiet: true})
				lanes.Instant(svc, p.Cursor)
				lanes.PathAt(svc, "wanted", p.Cursor)
			}
		})
	}
}
