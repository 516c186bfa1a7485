package apiserver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/kconverge/kconverge/engine/lab/apiserver"
)

func configMap(name, n string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"n": n}}
}

// number is a resourceVersion as a number.
func number(t *testing.T, obj any) uint64 {
	t.Helper()
	var version string
	if list, ok := obj.(metav1.ListInterface); ok {
		version = list.GetResourceVersion()
	} else {
		version = must(meta.Accessor(obj))(t).GetResourceVersion()
	}
	return must(strconv.ParseUint(version, 10, 64))(t)
}

// next waits for a watch's next event; ok is false when the watch has ended.
func next(t *testing.T, w watch.Interface) (e watch.Event, ok bool) {
	t.Helper()
	select {
	case e, ok = <-w.ResultChan():
		return e, ok
	case <-time.After(patience):
		t.Fatal("no event")
		panic("unreachable")
	}
}

func TestAWatchListStreamsWhatIsThereEndsItWithABookmarkAndGoesOn(t *testing.T) {
	s := start(t, apiserver.Options{})
	for _, contentType := range []string{runtime.ContentTypeProtobuf, runtime.ContentTypeJSON} {
		t.Run(contentType, func(t *testing.T) {
			config := s.Config()
			config.ContentType, config.AcceptContentTypes = contentType, contentType
			maps := clientFor(t, config).CoreV1().ConfigMaps("default")
			var last uint64
			for i := range 5 {
				last = number(t, must(maps.Create(t.Context(), configMap(fmt.Sprintf("m%d", i), "0"), metav1.CreateOptions{}))(t))
			}
			w := must(maps.Watch(t.Context(), metav1.ListOptions{
				AllowWatchBookmarks: true, SendInitialEvents: new(true), ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
			}))(t)
			defer w.Stop()
			var there []string
			for {
				e, ok := next(t, w)
				if !ok {
					t.Fatal("the watch ended")
				}
				m := e.Object.(*corev1.ConfigMap)
				if e.Type == watch.Bookmark {
					if m.Annotations[metav1.InitialEventsAnnotationKey] != "true" || number(t, m) < last {
						t.Errorf("bookmark at %s with %v, want the end of the list at %d or later", m.ResourceVersion, m.Annotations, last)
					}
					break
				}
				if e.Type != watch.Added || m.Data["n"] != "0" {
					t.Errorf("%s %s %v", e.Type, m.Name, m.Data)
				}
				there = append(there, m.Name)
			}
			slices.Sort(there)
			if want := []string{"m0", "m1", "m2", "m3", "m4"}; !slices.Equal(there, want) {
				t.Errorf("listed %v, want %v", there, want)
			}
			changed := must(maps.Update(t.Context(), configMap("m3", "1"), metav1.UpdateOptions{}))(t)
			e, _ := next(t, w)
			if m, ok := e.Object.(*corev1.ConfigMap); !ok || e.Type != watch.Modified || m.ResourceVersion != changed.ResourceVersion || m.Data["n"] != "1" {
				t.Errorf("after the list came %s %v", e.Type, e.Object)
			}
			if err := maps.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// follow reads a watch that the server ends, and returns how often it brought each
// change, and the version from which to go on.
func follow(t *testing.T, maps typedcorev1.ConfigMapInterface, from string, seen map[string]int) (to string) {
	t.Helper()
	w := must(maps.Watch(t.Context(), metav1.ListOptions{ResourceVersion: from, AllowWatchBookmarks: true, TimeoutSeconds: new(int64(1))}))(t)
	defer w.Stop()
	to = from
	for {
		e, ok := next(t, w)
		if !ok {
			return to
		}
		m, ok := e.Object.(*corev1.ConfigMap)
		if !ok {
			t.Fatalf("got %s %v", e.Type, e.Object)
		}
		if was := must(strconv.ParseUint(to, 10, 64))(t); number(t, m) < was {
			t.Errorf("%s at %s after one at %s", e.Type, m.ResourceVersion, to)
		}
		to = m.ResourceVersion
		if e.Type == watch.Bookmark {
			continue
		}
		seen[fmt.Sprintf("%s %s %s", e.Type, m.Name, m.Data["n"])]++
	}
}

func TestAWatchThatEndsIsResumedFromItsLastVersionWithoutLossOrRepetition(t *testing.T) {
	_, client := startClient(t)
	maps := client.CoreV1().ConfigMaps("default")
	from := must(maps.List(t.Context(), metav1.ListOptions{}))(t).ResourceVersion
	written := make(chan map[string]int)
	ended := make(chan struct{})
	go func() {
		done := map[string]int{}
		defer func() { written <- done }()
		must(maps.Create(t.Context(), configMap("m", "0"), metav1.CreateOptions{}))(t)
		done["ADDED m 0"]++
		// Until the third watch has begun, so that there are changes while
		// each is open and between them.
		for i := 1; ; i++ {
			select {
			case <-ended:
				return
			default:
			}
			if _, err := maps.Update(t.Context(), configMap("m", strconv.Itoa(i)), metav1.UpdateOptions{}); err != nil {
				t.Error(err)
				return
			}
			done[fmt.Sprintf("MODIFIED m %d", i)]++
		}
	}()
	seen := map[string]int{}
	for range 3 {
		from = follow(t, maps, from, seen)
	}
	close(ended)
	done := <-written
	follow(t, maps, from, seen) // what was written after the third ended
	for change := range done {
		if seen[change] != 1 {
			t.Errorf("%s came %d times", change, seen[change])
		}
	}
	if len(seen) != len(done) {
		t.Errorf("%d changes seen, %d made", len(seen), len(done))
	}
}

func TestABookmarkComesBeforeAWatchEnds(t *testing.T) {
	_, client := startClient(t)
	maps := client.CoreV1().ConfigMaps("default")
	from := must(maps.List(t.Context(), metav1.ListOptions{}))(t).ResourceVersion
	// It comes two seconds before the end, and once a minute.
	w := must(maps.Watch(t.Context(), metav1.ListOptions{ResourceVersion: from, AllowWatchBookmarks: true, TimeoutSeconds: new(int64(4))}))(t)
	defer w.Stop()
	last := number(t, must(maps.Create(t.Context(), configMap("m", "0"), metav1.CreateOptions{}))(t))
	var kinds []watch.EventType
	for {
		e, ok := next(t, w)
		if !ok {
			break
		}
		kinds = append(kinds, e.Type)
		if e.Type == watch.Bookmark && number(t, e.Object) < last {
			t.Errorf("a bookmark at %d after an event at %d", number(t, e.Object), last)
		}
	}
	if want := []watch.EventType{watch.Added, watch.Bookmark}; !slices.Equal(slices.Compact(kinds), want) {
		t.Errorf("the watch brought %v, want %v", kinds, want)
	}
}

func TestAWatchWhoseReaderIsLateLosesNothing(t *testing.T) {
	const changes = 100
	s, client := startClient(t)
	maps := client.CoreV1().ConfigMaps("default")
	from := must(maps.List(t.Context(), metav1.ListOptions{}))(t).ResourceVersion
	web := must(rest.HTTPClientFor(s.Config()))(t)
	req := must(http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL()+"/api/v1/namespaces/default/configmaps?watch=true&resourceVersion="+from, nil))(t)
	req.Header.Set("Accept", runtime.ContentTypeJSON)
	resp := must(web.Do(req))(t)
	defer resp.Body.Close()
	// More than any buffer of a connection has room for.
	m := configMap("m", "")
	m.Data["filler"] = strings.Repeat("x", 200<<10)
	must(maps.Create(t.Context(), m, metav1.CreateOptions{}))(t)
	for i := range changes {
		m.Data["n"] = strconv.Itoa(i)
		must(maps.Update(t.Context(), m, metav1.UpdateOptions{}))(t)
	}
	events := json.NewDecoder(resp.Body)
	for i := -1; i < changes; i++ {
		var e struct {
			Type   watch.EventType
			Object corev1.ConfigMap
		}
		if err := events.Decode(&e); err != nil {
			t.Fatalf("after %d changes: %v", i, err)
		}
		if i >= 0 && (e.Type != watch.Modified || e.Object.Data["n"] != strconv.Itoa(i)) {
			t.Fatalf("change %d came as %s %s", i, e.Type, e.Object.Data["n"])
		}
	}
}

// gone asks for a version of the past and tells whether it has expired.
func gone(ctx context.Context, maps typedcorev1.ConfigMapInterface, version string) error {
	_, err := maps.List(ctx, metav1.ListOptions{ResourceVersion: version, ResourceVersionMatch: metav1.ResourceVersionMatchExact})
	if !apierrors.IsResourceExpired(err) {
		return fmt.Errorf("a list at %s: %w, want 410", version, err)
	}
	return nil
}

func TestWhatWasCompactedIsGone(t *testing.T) {
	dir := dataDir(t)
	s := must(apiserver.Start(t.Context(), apiserver.Options{Dir: dir}))(t)
	maps := clientOf(t, s).CoreV1().ConfigMaps("default")
	old := must(maps.Create(t.Context(), configMap("m", "old"), metav1.CreateOptions{}))(t)
	must(maps.Update(t.Context(), configMap("m", "new"), metav1.UpdateOptions{}))(t)
	then := must(maps.List(t.Context(), metav1.ListOptions{ResourceVersion: old.ResourceVersion, ResourceVersionMatch: metav1.ResourceVersionMatchExact}))(t)
	if len(then.Items) != 1 || then.Items[0].Data["n"] != "old" {
		t.Errorf("the past is %v", then.Items)
	}
	if err := s.Compact(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, func(ctx context.Context) error { return gone(ctx, maps, old.ResourceVersion) })
	stop(t, s)

	// The watch cache of a server that was started since does not know the
	// past either.
	maps = clientOf(t, start(t, apiserver.Options{Dir: dir})).CoreV1().ConfigMaps("default")
	w, err := maps.Watch(t.Context(), metav1.ListOptions{ResourceVersion: old.ResourceVersion})
	if err == nil {
		defer w.Stop()
		e, _ := next(t, w)
		err = apierrors.FromObject(e.Object)
	}
	if !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
		t.Errorf("a watch from %s: %v, want 410", old.ResourceVersion, err)
	}
}

func TestAVersionOfTheFutureIsRefusedRatherThanAnsweredWithThePresent(t *testing.T) {
	_, client := startClient(t)
	maps := client.CoreV1().ConfigMaps("default")
	now := number(t, must(maps.List(t.Context(), metav1.ListOptions{}))(t))
	future := metav1.ListOptions{ResourceVersion: strconv.FormatUint(now+1000, 10), ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan}
	// Without the client's own retries.
	err := client.CoreV1().RESTClient().Get().Namespace("default").Resource("configmaps").
		VersionedParams(&future, scheme.ParameterCodec).MaxRetries(0).Do(t.Context()).Error()
	if !apierrors.IsTimeout(err) || !strings.Contains(err.Error(), "Too large resource version") {
		t.Errorf("a list not older than the future: %v", err)
	}
}

// dataDir is a directory for a server that is to be started again. The path of
// t.TempDir does not fit a unix socket's name.
func dataDir(t *testing.T) string {
	t.Helper()
	dir := must(os.MkdirTemp("", "kca"))(t)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// stored is what an informer holds, by name: the version.
func stored(i cache.SharedIndexInformer) map[string]string {
	out := map[string]string{}
	for _, obj := range i.GetStore().List() {
		if m, err := meta.Accessor(obj); err == nil {
			out[m.GetName()] = m.GetResourceVersion()
		}
	}
	return out
}

// listed is what a list has, by name: the version.
func listed(t *testing.T, client kubernetes.Interface, selector string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, m := range must(client.CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{LabelSelector: selector}))(t).Items {
		out[m.Name] = m.ResourceVersion
	}
	return out
}
