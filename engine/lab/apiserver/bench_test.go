package apiserver_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kconverge/kconverge/engine/lab/apiserver"
)

// BenchmarkStart measures from nothing to the first answered list.
func BenchmarkStart(b *testing.B) {
	for b.Loop() {
		s, err := apiserver.Start(b.Context(), apiserver.Options{})
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		if err := s.Stop(context.Background()); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}

// BenchmarkWatchDelivery measures from the return of a write to its event at
// another client's watch: a lag that every number of the lab contains. Negative
// when the event came first.
func BenchmarkWatchDelivery(b *testing.B) {
	s, err := apiserver.Start(b.Context(), apiserver.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Stop(context.Background())
	writer, reader := clientFor(b, s.Config()), clientFor(b, s.Config())
	w, err := reader.DiscoveryV1().EndpointSlices("default").Watch(b.Context(), metav1.ListOptions{})
	if err != nil {
		b.Fatal(err)
	}
	defer w.Stop()
	seen := make(chan time.Time)
	go func() {
		defer close(seen)
		for range w.ResultChan() {
			seen <- time.Now()
		}
	}()
	var lags []time.Duration
	n := 0
	for b.Loop() {
		n++
		slice := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("s%d", n)}, AddressType: discoveryv1.AddressTypeIPv4}
		if _, err := writer.DiscoveryV1().EndpointSlices("default").Create(b.Context(), slice, metav1.CreateOptions{}); err != nil {
			b.Fatal(err)
		}
		done := time.Now()
		lags = append(lags, (<-seen).Sub(done))
	}
	slices.Sort(lags)
	b.ReportMetric(float64(lags[len(lags)/2].Microseconds()), "p50-lag-µs")
	b.ReportMetric(float64(lags[len(lags)*99/100].Microseconds()), "p99-lag-µs")
}
