package kubelet

import (
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"net/netip"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"
)

// Version is the kubelet version that nodes report.
const Version = "v1.37.2"

// StopAfterAnnotation on a pod says how long its containers go on serving after
// they were told to stop, as a duration ("15s"); it takes the place of
// Options.StopDelay. Beyond the grace period they are killed.
const StopAfterAnnotation = "kconverge.dev/stop-after"

// Range is a span of durations out of which each pod gets one that follows from
// its UID, so that a repeated run with the same UIDs takes the same times. The
// zero Range stands for the default of the option it is used for; a negative
// bound counts as nothing at all.
type Range struct {
	Min, Max time.Duration
}

// None is the Range for no delay at all.
var None = Range{Min: -1, Max: -1}

// Exactly is the Range of one duration.
func Exactly(d time.Duration) Range {
	if d <= 0 {
		return None
	}
	return Range{Min: d, Max: d}
}

// pick returns the duration of one pod. what keeps the delays of one pod apart.
func (r Range) pick(uid, what string) time.Duration {
	h := fnv.New64a()
	h.Write([]byte(what))
	h.Write([]byte{0})
	h.Write([]byte(uid))
	// fnv's high bits barely differ between similar inputs: mix them.
	x := h.Sum64()
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	f := float64(x) / math.MaxUint64
	return max(0, r.Min+time.Duration(f*float64(r.Max-r.Min)))
}

func (r Range) or(def Range) Range {
	if r == (Range{}) {
		return def
	}
	return r
}

// Options describe one node and how its pods behave.
type Options struct {
	// Client reaches the API server; without a client-side rate limit, or
	// pods of a busy node wait for each other.
	Client kubernetes.Interface
	// Node is the node's name, Zone its topology zone (no label when empty).
	Node, Zone string
	// Addresses are the node's InternalIPs, PodCIDRs the ranges of its pods: one
	// of each family that the cluster has, the primary one first.
	Addresses []netip.Addr
	PodCIDRs  []netip.Prefix
	// Labels are added to the Node's.
	Labels map[string]string
	// Sandbox is the node's network.
	Sandbox Sandbox
	// Shared is what kubelets share, see NewShared. When nil the kubelet
	// watches the pods of its node itself.
	Shared *Shared
	// Clock tells the time; the real clock when nil. Network timeouts of
	// probes run on real time in any case.
	Clock clock.WithTicker

	// PullDelay is how long an image pull takes, 0.3 to 0.8 s by default. It
	// applies when the policy is Always or the node has not pulled the image.
	PullDelay Range
	// StartDelay is from the pull until the containers run, 0.15 to 0.4 s.
	StartDelay Range
	// AppWarmup is from then until the program listens, 0.2 to 0.9 s, so that
	// a first probe can fail, as in life.
	AppWarmup Range
	// NoticeDelay is from the containers' start until the kubelet notices,
	// reports them as running and probes them: 0 to 1 s, since the real one
	// lists its containers once a second (PLEG).
	NoticeDelay Range
	// StopDelay is how long containers go on serving after they were told to
	// stop, 1 s by default.
	StopDelay Range
	// Heartbeat is how often the node's Lease is renewed, 10 s by default.
	// The Node's status is written when it changes and every 5 minutes, or
	// with each heartbeat where the API server has no Leases.
	Heartbeat time.Duration
	// Hooks change what happens to pods and what the node's clock shows; none by
	// default.
	Hooks Hooks
}

func (o Options) withDefaults() (Options, error) {
	switch {
	case o.Client == nil:
		return o, errors.New("a kubelet needs a client of the API server")
	case o.Node == "":
		return o, errors.New("a kubelet needs the name of its node")
	case o.Sandbox == nil:
		return o, fmt.Errorf("the kubelet of %s needs a sandbox for the pods' network", o.Node)
	case len(o.Addresses) == 0 || len(o.Addresses) != len(o.PodCIDRs):
		return o, fmt.Errorf("the kubelet of %s needs the node's addresses, and a pod range for each", o.Node)
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	o.PullDelay = o.PullDelay.or(Range{300 * time.Millisecond, 800 * time.Millisecond})
	o.StartDelay = o.StartDelay.or(Range{150 * time.Millisecond, 400 * time.Millisecond})
	o.AppWarmup = o.AppWarmup.or(Range{200 * time.Millisecond, 900 * time.Millisecond})
	o.NoticeDelay = o.NoticeDelay.or(Range{0, time.Second})
	o.StopDelay = o.StopDelay.or(Exactly(time.Second))
	if o.Heartbeat <= 0 {
		o.Heartbeat = 10 * time.Second
	}
	return o, nil
}
