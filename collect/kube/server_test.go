package kube

import (
	"encoding/json"
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

// testServer speaks enough of the API's list and watch protocol for pods to
// play every fault of a watch.
type testServer struct {
	t    *testing.T
	http *httptest.Server

	mu       sync.Mutex
	rv       int
	pods     map[string]*corev1.Pod
	history  []watchEvent // index order = rv order
	horizon  int          // events up to it are forgotten
	changed  chan struct{}
	streams  map[int]chan struct{} // open streams, by number: closed to end one
	next     int
	hang     bool          // open and new streams deliver nothing
	pace     time.Duration // a stream waits that long after each event
	forbid   map[string]bool
	streamed bool // supports sendInitialEvents
	ignores  bool // takes sendInitialEvents for nothing
	refuse   bool // drop every connection
	bookmark int  // grows: open streams send a bookmark
	requests []string
}

type watchEvent struct {
	rv   int
	kind string
	pod  *corev1.Pod
}

func newTestServer(t *testing.T) *testServer {
	s := &testServer{t: t, pods: map[string]*corev1.Pod{}, changed: make(chan struct{}),
		streams: map[int]chan struct{}{}, forbid: map[string]bool{}, streamed: true, rv: 100}
	s.http = httptest.NewServer(s)
	t.Cleanup(func() {
		s.breakStreams()
		s.http.CloseClientConnections()
		s.http.Close()
	})
	return s
}

func (s *testServer) config() *rest.Config { return &rest.Config{Host: s.http.URL} }

// with changes the server's behaviour.
func (s *testServer) with(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *testServer) put(name string, label string) *corev1.Pod {
	var out *corev1.Pod
	s.with(func() { out = s.putLocked(name, label) })
	return out
}

func (s *testServer) putLocked(name, label string) *corev1.Pod {
	s.rv++
	kind, uid := "MODIFIED", types.UID("")
	if old, ok := s.pods[name]; ok {
		uid = old.UID
	} else {
		kind, uid = "ADDED", types.UID(fmt.Sprintf("uid-%d", s.rv))
	}
	p := &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: uid, ResourceVersion: strconv.Itoa(s.rv),
			Labels: map[string]string{"v": label}, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "test"}}},
	}
	s.pods[name] = p
	s.history = append(s.history, watchEvent{s.rv, kind, p})
	return p
}

func (s *testServer) remove(name string) { s.with(func() { s.removeLocked(name) }) }

func (s *testServer) removeLocked(name string) {
	old, ok := s.pods[name]
	if !ok {
		return
	}
	s.rv++
	p := old.DeepCopy()
	p.ResourceVersion = strconv.Itoa(s.rv)
	delete(s.pods, name)
	s.history = append(s.history, watchEvent{s.rv, "DELETED", p})
}

// breakStreams ends every open watch.
func (s *testServer) breakStreams() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for n, c := range s.streams {
		close(c)
		delete(s.streams, n)
	}
}

func (s *testServer) openStreams() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.streams)
}

func (s *testServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	q := r.URL.Query()
	verb := "list"
	if q.Get("watch") != "" {
		verb = "watch"
	}
	s.requests = append(s.requests, verb+" "+r.Header.Get("User-Agent"))
	refuse, forbidden, streamed := s.refuse, s.forbid[verb], s.streamed
	s.mu.Unlock()
	switch {
	case refuse:
		if c, _, err := http.NewResponseController(w).Hijack(); err == nil {
			_ = c.Close()
		}
	case r.URL.Path == "/version":
		writeJSON(w, 200, map[string]string{"gitVersion": "v1.37.2"})
	case !strings.HasSuffix(r.URL.Path, "/pods"):
		writeJSON(w, 404, status(404, metav1.StatusReasonNotFound, "no such resource"))
	case forbidden:
		writeJSON(w, 403, status(403, metav1.StatusReasonForbidden, "pods is forbidden: User \"\x1b[31mjo\" cannot "+verb))
	case verb == "list":
		s.serveList(w, r)
	case q.Get("sendInitialEvents") == "true" && !streamed:
		writeJSON(w, 422, status(422, metav1.StatusReasonInvalid, "sendInitialEvents is forbidden for watch"))
	default:
		s.serveWatch(w, r)
	}
}

func (s *testServer) serveList(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadataList") {
		l := metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadataList"}}
		l.ResourceVersion = strconv.Itoa(s.rv)
		for _, p := range s.pods {
			l.Items = append(l.Items, metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"}, ObjectMeta: p.ObjectMeta})
		}
		writeJSON(w, 200, l)
		return
	}
	l := corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}}
	l.ResourceVersion = strconv.Itoa(s.rv)
	for _, p := range s.pods {
		l.Items = append(l.Items, *p)
	}
	writeJSON(w, 200, l)
}

func (s *testServer) serveWatch(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	send := func(kind string, o any) {
		b, err := json.Marshal(map[string]any{"type": kind, "object": o})
		if err != nil {
			s.t.Error(err)
		}
		_, _ = w.Write(append(b, '\n'))
		_ = http.NewResponseController(w).Flush()
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(200)
	_ = http.NewResponseController(w).Flush()
	s.mu.Lock()
	end := make(chan struct{})
	n := s.next
	s.next++
	s.streams[n] = end
	defer func() {
		s.mu.Lock()
		delete(s.streams, n)
		s.mu.Unlock()
	}()
	from, _ := strconv.Atoi(q.Get("resourceVersion"))
	marked := s.bookmark
	if s.ignores && q.Get("sendInitialEvents") == "true" {
		from = s.rv
	} else if q.Get("sendInitialEvents") == "true" {
		for _, p := range s.pods {
			send("ADDED", p)
		}
		from = s.rv
		send("BOOKMARK", bookmarkPod(s.rv, true))
	} else if from < s.horizon {
		s.mu.Unlock()
		send("ERROR", status(410, metav1.StatusReasonExpired, "too old resource version"))
		return
	}
	for {
		if !s.hang {
			for _, e := range slices.Clone(s.history) {
				if e.rv > from {
					send(e.kind, e.pod)
					from = e.rv
					if pace := s.pace; pace > 0 {
						s.mu.Unlock()
						<-time.After(pace)
						s.mu.Lock()
					}
				}
			}
			if s.bookmark != marked {
				marked = s.bookmark
				send("BOOKMARK", bookmarkPod(s.rv, false))
			}
		}
		changed := s.changed
		s.mu.Unlock()
		select {
		case <-changed:
		case <-end:
			return
		case <-r.Context().Done():
			return
		}
		s.mu.Lock()
	}
}

func bookmarkPod(rv int, initial bool) *corev1.Pod {
	p := &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{ResourceVersion: strconv.Itoa(rv)}}
	if initial {
		p.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
	}
	return p
}

func status(code int32, reason metav1.StatusReason, msg string) *metav1.Status {
	return &metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: "Failure", Code: code, Reason: reason, Message: msg}
}

func writeJSON(w http.ResponseWriter, code int, o any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(o)
}
