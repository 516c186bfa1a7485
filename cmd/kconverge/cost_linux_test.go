package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/flowcontrol"
)

// cpu is the processor time that a process has used, from /proc/PID/stat, in the
// kernel's ticks of 10 ms.
func cpu(b *testing.B, pid int) time.Duration {
	b.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		b.Fatal(err)
	}
	f := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+2:])
	var ticks int64
	for _, field := range f[11:13] { // utime, stime
		n, err := strconv.ParseInt(string(field), 10, 64)
		if err != nil {
			b.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// memoryOf is what a process holds in memory now, and what it held at most, in MB.
func memoryOf(b *testing.B, pid int) (now, most float64) {
	b.Helper()
	status := procFile(b, pid, "status")
	return number(status, "VmRSS:") / 1024, number(status, "VmHWM:") / 1024
}

// wakeups is how often the threads of a process have gone to sleep so far.
func wakeups(b *testing.B, pid int) (n float64) {
	b.Helper()
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		b.Fatal(err)
	}
	for _, task := range tasks {
		n += number(procFile(b, pid, "task/"+task.Name()+"/status"), "voluntary_ctxt_switches:")
	}
	return n
}

func procFile(b *testing.B, pid int, name string) string {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, name))
	if err != nil {
		b.Fatal(err)
	}
	return string(text)
}

// number is what a file of /proc says behind a name at the beginning of a line, 0 when
// nothing.
func number(text, name string) float64 {
	_, rest, _ := strings.Cut("\n"+text, "\n"+name)
	var n float64
	_, _ = fmt.Sscan(rest, &n)
	return n
}

// counter counts what the program writes to its terminal.
type counter struct {
	*terminal
	bytes atomic.Int64
}

func (c *counter) Write(p []byte) (int, error) {
	c.bytes.Add(int64(len(p)))
	return c.terminal.Write(p)
}

// watchOnAScreen runs a lab of three nodes with an agent on each, which has these flags or
// is as the printed DaemonSet runs it, and `watch` with
// its Timeline on a terminal of 200x50 beside it. It returns the process that watches.
func watchOnAScreen(b *testing.B, agents ...string) (h *home, pid int, drawn *counter) {
	b.Helper()
	h = newHome(b)
	lab := h.lab(b, "--seed", "--nodes", "3")
	drawn = &counter{terminal: newTerminal(200, 50)}
	args := append([]string{"watch", "svc/web", "--kubeconfig", h.kubeconfig()}, h.agentsWith(b, lab, agents...)...)
	cmd := drawn.run(b, h, drawn, args...)
	eventually(b, "the seeded Service is drawn as converged", func() bool {
		s := drawn.screen()
		return slicesShown(s) == seeded && bytes.Contains([]byte(s), []byte("● converged"))
	})
	return h, h.below(b, cmd.Process.Pid), drawn
}

// peer starts a program of nothing but client-go's informers on the home's lab.
func (h *home) peer(b *testing.B) (pid int) {
	b.Helper()
	var said buffer
	cmd := exec.Command(os.Args[0])
	// Its heap may grow as that of watch does.
	cmd.Env = append(slices.Clone(h.env), peerEnv+"="+h.kubeconfig(), "GOGC=1600")
	cmd.Stderr = &said
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	eventually(b, "the informers have synced", func() bool { return strings.Contains(said.String(), "synced") })
	return cmd.Process.Pid
}

// BenchmarkWatch measures what `watch` with its screen costs, apart from the lab that
// it watches, and how much of that bare informers take beside it: -benchtime 60x is a
// minute of each.
//
//	go test -run '^$' -bench 'Watch$' -benchtime 60x ./cmd/kconverge
func BenchmarkWatch(b *testing.B) {
	for _, c := range []struct {
		name   string
		rate   int
		agents []string
	}{
		{"idle", 0, nil},
		{"idle_and_agents_that_speak_twice_a_second", 0, []string{"--heartbeat", "500ms", "--keyframe", "2s"}},
		{"500_events_a_second", 500, nil},
	} {
		b.Run(c.name, func(b *testing.B) {
			rate := c.rate
			h, pid, drawn := watchOnAScreen(b, c.agents...)
			peer := h.peer(b)
			var sent atomic.Int64
			if rate > 0 {
				h.disturb(b, rate, &sent)
				eventually(b, "events come", func() bool { return sent.Load() > int64(rate) })
			}
			barely := cpu(b, peer)
			before, woken, bytes, events, began := cpu(b, pid), wakeups(b, pid), drawn.bytes.Load(), sent.Load(), time.Now()
			b.ResetTimer()
			tick := time.NewTicker(time.Second)
			defer tick.Stop()
			for range b.N {
				<-tick.C
			}
			took := time.Since(began).Seconds()
			b.ReportMetric(100*(cpu(b, pid)-before).Seconds()/took, "%-of-a-core")
			b.ReportMetric(100*(cpu(b, peer)-barely).Seconds()/took, "%-bare-informers")
			b.ReportMetric((wakeups(b, pid)-woken)/took, "wake-ups/s")
			now, most := memoryOf(b, pid)
			b.ReportMetric(now, "MB")
			b.ReportMetric(most, "peak-MB")
			b.ReportMetric(float64(drawn.bytes.Load()-bytes)/took, "terminal-B/s")
			b.ReportMetric(float64(sent.Load()-events)/took, "events/s")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// disturb writes slices by hand, rate a second in all, until the benchmark ends, and
// counts them: each has one endpoint, or two.
func (h *home) disturb(b *testing.B, rate int, sent *atomic.Int64) {
	b.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", h.kubeconfig())
	if err != nil {
		b.Fatal(err)
	}
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		b.Fatal(err)
	}
	const writers = 8
	limit := flowcontrol.NewTokenBucketRateLimiter(float32(rate), writers)
	port, name := int32(8080), "http"
	for w := range writers {
		s := &discoveryv1.EndpointSlice{
			ObjectMeta:  metav1.ObjectMeta{Name: fmt.Sprintf("by-hand-%d", w), Labels: map[string]string{discoveryv1.LabelServiceName: "web", discoveryv1.LabelManagedBy: "hand"}},
			AddressType: discoveryv1.AddressTypeIPv4,
			Ports:       []discoveryv1.EndpointPort{{Name: &name, Port: &port}},
		}
		s, err := client.DiscoveryV1().EndpointSlices("default").Create(b.Context(), s, metav1.CreateOptions{})
		if err != nil {
			b.Fatal(err)
		}
		go func() {
			for n := 0; limit.Wait(b.Context()) == nil; n++ {
				s.Endpoints = nil
				for i := range n%2 + 1 {
					s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{Addresses: []string{fmt.Sprintf("10.244.20%d.%d", w, i+1)}})
				}
				next, err := client.DiscoveryV1().EndpointSlices("default").Update(b.Context(), s, metav1.UpdateOptions{})
				if err != nil {
					return
				}
				s = next
				sent.Add(1)
			}
		}()
	}
}
