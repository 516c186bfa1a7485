package apiserver

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"
)

// cutting is a storage whose watches end after what they have been given.
type cutting struct {
	storage.Interface
	gives [][]watch.Event // of the first watch, the second, ...
	asked []string        // from where each was asked for
}

func (c *cutting) Versioner() storage.Versioner { return storage.APIObjectVersioner{} }

func (c *cutting) Watch(_ context.Context, _ string, o storage.ListOptions) (watch.Interface, error) {
	from := o.ResourceVersion
	if asksInitialEvents(o) {
		from += " with initial events"
	}
	c.asked = append(c.asked, from)
	if len(c.gives) == 0 {
		return nil, errors.New("no more")
	}
	w := watch.NewFakeWithChanSize(len(c.gives[0]), false)
	for _, e := range c.gives[0] {
		w.Action(e.Type, e.Object)
	}
	w.Stop()
	c.gives = c.gives[1:]
	return w, nil
}

func at(kind watch.EventType, version int, annotations ...string) watch.Event {
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{ResourceVersion: strconv.Itoa(version)}}
	for _, a := range annotations {
		m.Annotations = map[string]string{a: "true"}
	}
	return watch.Event{Type: kind, Object: m}
}

func TestAWatchThatTheCacheEndedGoesOnFromItsLastEvent(t *testing.T) {
	listed := []watch.Event{at(watch.Added, 3), at(watch.Added, 7), at(watch.Bookmark, 9, metav1.InitialEventsAnnotationKey)}
	gone := watch.Event{Type: watch.Error, Object: &metav1.Status{}}
	for name, c := range map[string]struct {
		options storage.ListOptions
		gives   [][]watch.Event
		asked   []string
		events  int
	}{
		"from a version": {
			storage.ListOptions{ResourceVersion: "5"}, [][]watch.Event{{at(watch.Added, 6), at(watch.Deleted, 8)}, {}, {at(watch.Bookmark, 11)}},
			[]string{"5", "8", "8", "11"}, 3,
		},
		"a list that has come": {
			storage.ListOptions{SendInitialEvents: new(true)}, [][]watch.Event{listed, {at(watch.Modified, 10)}},
			[]string{" with initial events", "9", "10"}, 4,
		},
		"a list that has not come whole": {
			storage.ListOptions{SendInitialEvents: new(true)}, [][]watch.Event{listed[:2]}, []string{" with initial events"}, 2,
		},
		"from any version": {
			storage.ListOptions{ResourceVersion: "0"}, [][]watch.Event{{at(watch.Added, 6)}}, []string{"0"}, 1,
		},
		"after an error": {
			storage.ListOptions{ResourceVersion: "5"}, [][]watch.Event{{at(watch.Added, 6), gone}}, []string{"5"}, 2,
		},
	} {
		s := &cutting{gives: c.gives}
		w, err := patient{s}.Watch(t.Context(), "", c.options)
		if err != nil {
			t.Fatal(err)
		}
		events := 0
		for range w.ResultChan() {
			events++
		}
		w.Stop()
		if !slices.Equal(s.asked, c.asked) || events != c.events {
			t.Errorf("%s: watched from %q, want %q; %d events, want %d", name, s.asked, c.asked, events, c.events)
		}
	}

	over, cancel := context.WithCancel(t.Context())
	cancel()
	s := &cutting{gives: [][]watch.Event{{at(watch.Added, 6)}, {}}}
	w, err := patient{s}.Watch(over, "", storage.ListOptions{ResourceVersion: "5"})
	if err != nil {
		t.Fatal(err)
	}
	for range w.ResultChan() {
	}
	if len(s.asked) != 1 {
		t.Errorf("a watch whose time was over was continued: %q", s.asked)
	}
}
