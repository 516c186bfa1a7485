package kubelet

import "time"

// A container that ends is started again at once the first time, then after
// 10 s, 20 s and so on up to five minutes; one that ran for ten minutes begins
// anew (k8s.io/kubernetes pkg/kubelet kuberuntime_manager.go doBackOff over
// k8s.io/client-go/util/flowcontrol Backoff).
const (
	firstBackOff = 10 * time.Second
	maxBackOff   = 300 * time.Second
)

// backOff is the memory of one container's restarts.
type backOff struct {
	delay   time.Duration
	updated time.Time
}

// wait is how long after its end a container may not be started.
func (b *backOff) wait(ended time.Time) time.Duration {
	if b.expired(ended) {
		return 0
	}
	return b.delay
}

// next notes a restart after an end.
func (b *backOff) next(ended, now time.Time) {
	if b.delay == 0 || b.expired(ended) {
		b.delay = firstBackOff
	} else {
		b.delay = min(2*b.delay, maxBackOff)
	}
	b.updated = now
}

func (b *backOff) expired(ended time.Time) bool {
	return ended.Sub(b.updated) > 2*maxBackOff
}
