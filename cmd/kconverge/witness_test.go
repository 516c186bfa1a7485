package main

import (
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/kconverge/kconverge/collect"
)

// seenBy lists when each version of a pod or slice was seen by a watch, from an
// event stream.
func seenBy(t testing.TB, stream string) map[string]time.Time {
	t.Helper()
	out := map[string]time.Time{}
	for line := range strings.Lines(stream) {
		if !strings.HasSuffix(line, "\n") {
			continue // still being written
		}
		e, err := collect.Unmarshal([]byte(line))
		if err != nil {
			t.Fatal(err)
		}
		if (e.Source == collect.SourcePods || e.Source == collect.SourceEndpointSlices) && e.Op != collect.OpListed && e.ResourceVersion > 0 {
			out[string(e.Source)+" "+e.Object.Name+" "+strconv.FormatUint(e.ResourceVersion, 10)] = e.At
		}
	}
	return out
}

// witnessed runs a lab and, beside it, a second process that is given nothing
// but the kubeconfig, scales n times, and returns for each version of a pod or
// slice how far apart the two saw it.
func witnessed(t testing.TB, n int) (apart []time.Duration) {
	t.Helper()
	h := newHome(t)
	lab := h.lab(t, "--nodes", "2", "--seed", "--output", "events")
	h.await(t, lab, `"obj":{"kind":"Pod"`)
	watch := h.start(t, "watch", "--headless", "--output", "events", "--kubeconfig", h.kubeconfig())
	h.await(t, watch, `"src":"kube/endpointslices","type":"sourcestate","data":{"state":"synced"`)
	h.await(t, watch, `"src":"kube/pods","type":"sourcestate","data":{"state":"synced"`)
	for i := range n {
		h.kubectl(t, "scale", "deployment/web", "--replicas="+strconv.Itoa(4+(i+1)%3))
		h.kubectl(t, "rollout", "status", "deployment/web")
	}
	// Both have seen all when both have seen what comes last.
	h.kubectl(t, "run", "last", "--image=nginx")
	for _, p := range []*process{lab, watch} {
		h.await(t, p, `"name":"last"`)
	}
	for _, p := range []*process{watch, lab} {
		if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		p.wait()
	}
	inside, outside := seenBy(t, lab.stdout.String()), seenBy(t, watch.stdout.String())
	since := time.Time{}
	for _, at := range outside {
		if since.IsZero() || at.Before(since) {
			since = at
		}
	}
	for version, at := range inside {
		other, ok := outside[version]
		switch {
		case ok:
			apart = append(apart, at.Sub(other).Abs())
		case at.After(since) && !strings.Contains(version, " last "):
			t.Errorf("%s was seen by the lab at %s and never by the witness", version, at)
		}
	}
	for version, at := range outside {
		if _, ok := inside[version]; !ok && !strings.Contains(version, " last ") {
			t.Errorf("%s was seen by the witness at %s and never by the lab", version, at)
		}
	}
	slices.Sort(apart)
	return apart
}

// await waits until a process has printed something.
func (h *home) await(t testing.TB, p *process, text string) {
	t.Helper()
	eventually(t, p.cmd.Args[1]+" prints "+text, func() bool { return strings.Contains(p.stdout.String(), text) })
}

func TestAWitnessWithNothingButTheKubeconfigSeesTheSame(t *testing.T) {
	apart := witnessed(t, 4)
	if len(apart) < 20 {
		t.Fatalf("only %d versions were seen by both", len(apart))
	}
	t.Logf("%d versions of pods and slices, apart by median %s, at most %s", len(apart), apart[len(apart)/2], apart[len(apart)-1])
}

// BenchmarkWitness measures how far apart two processes see the same versions
// of pods and slices: run it with -benchtime 20x.
func BenchmarkWitness(b *testing.B) {
	apart := witnessed(b, b.N)
	ms := func(q float64) float64 { return float64(apart[int(q*float64(len(apart)-1))].Microseconds()) / 1000 }
	b.ReportMetric(ms(0.5), "p50-ms")
	b.ReportMetric(ms(0.99), "p99-ms")
	b.ReportMetric(ms(1), "max-ms")
	b.ReportMetric(0, "ns/op")
}
