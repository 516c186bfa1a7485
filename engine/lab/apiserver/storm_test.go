package apiserver_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/url"
	"strconv"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/retry"

	"github.com/kconverge/kconverge/engine/lab/apiserver"
)

func TestOf800IncrementsAtOnceNoneIsLost(t *testing.T) {
	const writers, each = 20, 40
	again := wait.Backoff{Steps: 1000, Duration: 20 * time.Millisecond, Factor: 1, Jitter: 10}
	s, client := startClient(t)
	must(client.CoreV1().ConfigMaps("default").Create(t.Context(), configMap("m", "0"), metav1.CreateOptions{}))(t)
	var all sync.WaitGroup
	var mu sync.Mutex
	conflicts := 0
	for range writers {
		all.Go(func() {
			own := clientFor(t, s.Config()).CoreV1().ConfigMaps("default")
			for range each {
				err := retry.RetryOnConflict(again, func() error {
					m, err := own.Get(t.Context(), "m", metav1.GetOptions{})
					if err != nil {
						return err
					}
					n, err := strconv.Atoi(m.Data["n"])
					if err != nil {
						return err
					}
					m.Data["n"] = strconv.Itoa(n + 1)
					_, err = own.Update(t.Context(), m, metav1.UpdateOptions{})
					if apierrors.IsConflict(err) {
						mu.Lock()
						conflicts++
						mu.Unlock()
					}
					return err
				})
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	m := must(client.CoreV1().ConfigMaps("default").Get(t.Context(), "m", metav1.GetOptions{}))(t)
	if m.Data["n"] != strconv.Itoa(writers*each) {
		t.Errorf("counted to %s, want %d", m.Data["n"], writers*each)
	}
	if conflicts == 0 {
		t.Error("there was no conflict: nothing was at once")
	}
	t.Logf("%d conflicts", conflicts)
}

// witness is an informer with what its handler was told, folded: the version of
// each object by its name.
type witness struct {
	cache.SharedIndexInformer
	selector string

	mu   sync.Mutex
	told map[string]string
	odd  []string
}

// watchMaps starts an informer of the ConfigMaps of the namespace default.
func watchMaps(t *testing.T, client kubernetes.Interface, selector string) *witness {
	t.Helper()
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace("default"),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = selector }))
	w := &witness{SharedIndexInformer: factory.Core().V1().ConfigMaps().Informer(), selector: selector, told: map[string]string{}}
	must(w.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { w.hear(nil, obj) },
		UpdateFunc: func(old, obj any) {
			w.hear(old, obj)
		},
		DeleteFunc: func(obj any) { w.hear(obj, nil) },
	}))(t)
	ctx, cancel := context.WithCancel(context.Background())
	factory.Start(ctx.Done())
	t.Cleanup(func() { cancel(); factory.Shutdown() })
	if !cache.WaitForCacheSync(t.Context().Done(), w.HasSynced) {
		t.Fatal("the informer did not sync")
	}
	return w
}

func (w *witness) hear(old, obj any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if d, ok := old.(cache.DeletedFinalStateUnknown); ok {
		old = d.Obj
	}
	was, now := old, obj
	if now == nil {
		now = was
	}
	m, err := meta.Accessor(now)
	if err != nil {
		w.odd = append(w.odd, err.Error())
		return
	}
	switch before, known := w.told[m.GetName()]; {
	case obj == nil && !known, old == nil && known:
		w.odd = append(w.odd, fmt.Sprintf("%s: known is %v, then it came or went", m.GetName(), known))
	case obj != nil && known && len(before) == len(m.GetResourceVersion()) && before > m.GetResourceVersion():
		w.odd = append(w.odd, fmt.Sprintf("%s: %s after %s", m.GetName(), m.GetResourceVersion(), before))
	}
	if obj == nil {
		delete(w.told, m.GetName())
		return
	}
	w.told[m.GetName()] = m.GetResourceVersion()
}

// agrees checks an informer, and what its handler was told, against a list.
func (w *witness) agrees(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	want := listed(t, client, w.selector)
	eventually(t, func(context.Context) error {
		if got := stored(w); !maps.Equal(got, want) {
			return fmt.Errorf("an informer of %q has %d objects, a list %d: %v and %v", w.selector, len(got), len(want), got, want)
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		if !maps.Equal(w.told, want) {
			return fmt.Errorf("a handler of %q was told of %d objects, a list has %d", w.selector, len(w.told), len(want))
		}
		return nil
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, o := range w.odd {
		t.Errorf("selector %q: %s", w.selector, o)
	}
}

// storm changes ConfigMaps at random from several clients at once.
func storm(t *testing.T, s *apiserver.Server, writers, each int) {
	t.Helper()
	var all sync.WaitGroup
	for i := range writers {
		all.Go(func() {
			own := clientFor(t, s.Config()).CoreV1().ConfigMaps("default")
			random := rand.New(rand.NewPCG(1, uint64(i)))
			for range each {
				m := configMap(fmt.Sprintf("m%d", random.IntN(40)), strconv.Itoa(random.IntN(1000)))
				// A change of the label is a deletion to some watches.
				m.Labels = map[string]string{"half": []string{"a", "b"}[random.IntN(2)]}
				var err error
				switch random.IntN(4) {
				case 0:
					_, err = own.Create(t.Context(), m, metav1.CreateOptions{})
				case 1:
					err = own.Delete(t.Context(), m.Name, metav1.DeleteOptions{})
				default:
					_, err = own.Update(t.Context(), m, metav1.UpdateOptions{})
				}
				if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsAlreadyExists(err) && !apierrors.IsConflict(err) {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}

func TestTenInformersHaveWhatAListHasAfterAStorm(t *testing.T) {
	s, client := startClient(t)
	var all []*witness
	for i := range 10 {
		config := s.Config()
		if i%2 == 0 {
			config.ContentType, config.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
		}
		all = append(all, watchMaps(t, clientFor(t, config), []string{"", "", "half=a", "half=b", "half!=a"}[i/2]))
	}
	storm(t, s, 8, 150)
	if n := len(listed(t, client, "half=a")); n == 0 {
		t.Error("nothing is left to compare")
	}
	for _, w := range all {
		w.agrees(t, client)
	}
}

func TestAnInformerGoesOnWithAServerThatWasStartedAnewWithItsHistoryCompacted(t *testing.T) {
	o := apiserver.Options{Dir: dataDir(t), Token: "the-token"}
	s := must(apiserver.Start(t.Context(), o))(t)
	client := clientOf(t, s)
	must(client.CoreV1().ConfigMaps("default").Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "stays"}}, metav1.CreateOptions{}))(t)
	must(client.CoreV1().ConfigMaps("default").Create(t.Context(), configMap("goes", "0"), metav1.CreateOptions{}))(t)
	at := must(url.Parse(s.URL()))(t)
	// The server's certificate is another one each time.
	config := s.Config()
	config.Insecure, config.CAData = true, nil
	w := watchMaps(t, clientFor(t, config), "")
	stop(t, s)

	// What changes meanwhile changes where the informer does not look.
	s = must(apiserver.Start(t.Context(), o))(t)
	maps := clientOf(t, s).CoreV1().ConfigMaps("default")
	if err := maps.Delete(t.Context(), "goes", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	must(maps.Update(t.Context(), configMap("stays", "1"), metav1.UpdateOptions{}))(t)
	if err := s.Compact(t.Context()); err != nil {
		t.Fatal(err)
	}
	stop(t, s)

	o.Addr = at.Host
	s = start(t, o)
	must(clientOf(t, s).CoreV1().ConfigMaps("default").Create(t.Context(), configMap("comes", "0"), metav1.CreateOptions{}))(t)
	w.agrees(t, clientOf(t, s))
}
