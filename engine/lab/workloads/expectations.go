package workloads

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/clock"
)

// expectationTimeout is after how long a creation or deletion that the watch
// never showed is forgotten (kube-controller-manager's ExpectationsTimeout).
const expectationTimeout = 5 * time.Minute

// expectations remember, per ReplicaSet, which of its own writes its cache has
// not shown yet. While some are outstanding the cache is known to be stale, and
// acting on it would create or delete too many pods.
type expectations struct {
	clock clock.PassiveClock
	mu    sync.Mutex
	byKey map[string]*expectation
}

type expectation struct {
	creates int
	deletes sets.Set[types.UID]
	since   time.Time
}

func newExpectations(clk clock.PassiveClock) *expectations {
	return &expectations{clock: clk, byKey: map[string]*expectation{}}
}

// expectCreates must be called before the creations, so that no event can
// arrive first.
func (e *expectations) expectCreates(key string, n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.byKey[key] = &expectation{creates: n, since: e.clock.Now()}
}

// expectDeletes must be called before the deletions.
func (e *expectations) expectDeletes(key string, uids ...types.UID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.byKey[key] = &expectation{deletes: sets.New(uids...), since: e.clock.Now()}
}

// created lowers the number of creations: one was seen, or one failed.
func (e *expectations) created(key string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if x := e.byKey[key]; x != nil && x.creates > 0 {
		x.creates--
	}
}

// deleted takes a deletion off: it was seen (the object gone, or its
// deletionTimestamp set), or it failed.
func (e *expectations) deleted(key string, uid types.UID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if x := e.byKey[key]; x != nil {
		x.deletes.Delete(uid)
	}
}

func (e *expectations) forget(key string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.byKey, key)
}

// satisfied reports that the cache shows everything that was written.
func (e *expectations) satisfied(key string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	x := e.byKey[key]
	return x == nil || x.creates == 0 && x.deletes.Len() == 0 || e.clock.Since(x.since) > expectationTimeout
}
