package nodelog

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// cluster answers for pods and pods/log as an API server and its kubelets do: a
// log follows its container, across rotations, until that ends. Everything else
// is forbidden.
type cluster struct {
	t      testing.TB
	server *httptest.Server

	mu        sync.Mutex
	cond      *sync.Cond
	pods      map[string]*testPod // by name
	forbidden string              // "list" or "log"
	asked     map[string]int      // method and path without names
	closed    bool
	breaks    int // connections that were broken

	// remote is the API server in front, nil when the cluster plays it too.
	remote    *rest.Config
	listEvery time.Duration
}

// testPod is an agent's pod with its container's log.
type testPod struct {
	name, node string
	uid        int
	running    bool
	lines      []logLine
	before     []logLine // of the container before it; nil without one
	first      int       // lines before it are rotated away
	epoch      int       // of its connections: a higher one breaks them
}

type logLine struct {
	at   time.Time
	text []byte
}

func newCluster(t testing.TB) *cluster {
	c := &cluster{t: t, pods: map[string]*testPod{}, asked: map[string]int{}, listEvery: 20 * time.Millisecond}
	c.cond = sync.NewCond(&c.mu)
	c.server = httptest.NewUnstartedServer(c)
	c.server.EnableHTTP2 = true
	c.server.StartTLS()
	t.Cleanup(func() {
		c.change(func() { c.closed = true })
		c.server.Close()
	})
	return c
}

func (c *cluster) config() *rest.Config {
	if c.remote != nil {
		return c.remote
	}
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.server.Certificate().Raw})
	return &rest.Config{Host: c.server.URL, TLSClientConfig: rest.TLSClientConfig{CAData: ca}}
}

// change does something to the cluster and wakes everybody who follows a log.
func (c *cluster) change(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f()
	c.cond.Broadcast()
}

func (c *cluster) addPod(name, node string, uid int) *testPod {
	p := &testPod{name: name, node: node, uid: uid, running: true}
	c.change(func() { c.pods[name] = p })
	return p
}

// write appends lines to the log of a pod, as if written now.
func (c *cluster) write(p *testPod, lines ...[]byte) {
	c.change(func() {
		for _, l := range lines {
			p.lines = append(p.lines, logLine{time.Now(), l})
		}
	})
}

// restart starts the pod's container anew, with the lines in its log.
func (p *testPod) restart(lines ...[]byte) {
	p.before, p.lines, p.first, p.running = p.lines[p.first:], nil, 0, true
	for _, l := range lines {
		p.lines = append(p.lines, logLine{time.Now(), l})
	}
}

func (c *cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	const base = "/api/v1/namespaces/kconverge/pods"
	rest, ok := strings.CutPrefix(r.URL.Path, base)
	name, isLog := strings.CutSuffix(strings.TrimPrefix(rest, "/"), "/log")
	c.mu.Lock()
	what := r.Method + " other"
	switch {
	case ok && rest == "":
		what = r.Method + " pods"
	case ok && isLog:
		what = r.Method + " pods/log"
	}
	c.asked[what]++
	denied := c.forbidden == "list" && what == "GET pods" || c.forbidden == "log" && what == "GET pods/log" || strings.HasSuffix(what, "other")
	c.mu.Unlock()
	switch {
	case denied:
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		_ = json.NewEncoder(w).Encode(metav1.Status{
			TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Reason: metav1.StatusReasonForbidden, Code: 403,
			Message: "User \"viewer\" cannot do that",
		})
	case isLog:
		c.log(w, r, name)
	default:
		c.list(w, r)
	}
}

func (c *cluster) list(w http.ResponseWriter, r *http.Request) {
	if got := r.URL.Query().Get("labelSelector"); got != AgentLabel+"="+AgentName {
		c.t.Errorf("label selector %q", got)
	}
	list := corev1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}}
	c.mu.Lock()
	for _, p := range c.pods {
		st := corev1.ContainerStatus{Name: Container, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
		if !p.running {
			st.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "Error"}}
		}
		list.Items = append(list.Items, corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: p.name, Namespace: "kconverge", UID: types.UID(strconv.Itoa(p.uid)), CreationTimestamp: metav1.NewTime(time.Unix(int64(p.uid), 0))},
			Spec:       corev1.PodSpec{NodeName: p.node}, Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{st}},
		})
	}
	c.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(list)
}

func (c *cluster) log(w http.ResponseWriter, r *http.Request, name string) {
	q := r.URL.Query()
	if q.Get("container") != Container {
		c.t.Errorf("container %q", q.Get("container"))
	}
	follow := q.Get("follow") == "true"
	var since time.Time
	if s := q.Get("sinceTime"); s != "" {
		t, err := time.Parse(time.RFC3339, s)
		if err != nil {
			c.t.Error(err)
		}
		since = t
	}
	if s := q.Get("sinceSeconds"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil {
			c.t.Error(err)
		}
		if n < 1 { // as the API does
			c.t.Errorf("asked for the log of %d s", n)
			w.WriteHeader(http.StatusUnprocessableEntity)
			return
		}
		since = time.Now().Add(-time.Duration(n) * time.Second)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.pods[name]
	if p == nil {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	if q.Get("previous") == "true" {
		// kubelet_pods.go, validateContainerLogStatus
		if p.before == nil {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = fmt.Fprintf(w, "previous terminated container %q in pod %q not found", Container, name)
			return
		}
		p, follow = &testPod{lines: p.before}, false
	}
	flush := func() {
		c.mu.Unlock()
		_ = http.NewResponseController(w).Flush()
		c.mu.Lock()
	}
	epoch, next := p.epoch, p.first
	gone := r.Context().Done()
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		select {
		case <-gone:
			c.change(func() {})
		case <-stop:
		}
	}()
	flush()
	for {
		next = max(next, p.first)
		for p.epoch == epoch && next < len(p.lines) {
			l := p.lines[next]
			next++
			if l.at.Before(since) {
				continue
			}
			text := l.text
			if !slices.Contains(text, '\n') {
				text = append(slices.Clone(text), '\n')
			}
			c.mu.Unlock()
			_, err := w.Write(text)
			c.mu.Lock()
			if err != nil {
				return
			}
			next = max(next, p.first)
		}
		flush()
		switch {
		case p.epoch != epoch:
			c.breaks++
			panic(http.ErrAbortHandler) // the deferred unlock runs
		case next < len(p.lines):
			continue
		case !follow, !p.running, c.closed, c.pods[name] != p, r.Context().Err() != nil:
			return
		}
		c.cond.Wait()
	}
}

func (c *cluster) String() string { return fmt.Sprint(c.asked) }
