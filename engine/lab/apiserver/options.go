package apiserver

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net/http"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
)

// Options says how to run the server. The zero value is usable.
type Options struct {
	// Addr is the TCP address to listen on; "127.0.0.1:0" when empty.
	Addr string
	// Token is the bearer token clients must present; a random one when empty.
	Token string
	// Dir holds etcd's data and is kept at Stop. When empty the data live in
	// memory where the kernel allows it, else in a private temporary
	// directory; either is gone after Stop, and the next Start removes what a
	// killed process left.
	Dir string
	// NoIPv6 is why the cluster has IPv4 alone, for people to read; when empty
	// it is dual-stack, with IPv4 first.
	NoIPv6 string
	// Wrap, when set, is put around everything that serves resources, behind
	// authentication: it may delay requests, answer them itself, or stand in the way
	// of what is answered. It is meant for faults.
	Wrap func(http.Handler) http.Handler
	// CheckConfigMap, when set, says what is wrong with a ConfigMap that somebody
	// writes; it is refused then.
	CheckConfigMap func(*corev1.ConfigMap) error
	// Log takes what etcd and gRPC have to say; nothing is logged when nil.
	// The API server itself logs through klog, which the program redirects.
	Log *zap.Logger
	// Clock stamps ages in tables; the real clock when nil.
	Clock clock.PassiveClock
}

func (o Options) withDefaults() (Options, error) {
	if o.Addr == "" {
		o.Addr = "127.0.0.1:0"
	}
	if o.Token == "" {
		b := make([]byte, 32)
		if _, err := rand.Read(b); err != nil {
			return o, fmt.Errorf("making a token for the lab's API server: %w", err)
		}
		o.Token = hex.EncodeToString(b)
	}
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return o, nil
}
