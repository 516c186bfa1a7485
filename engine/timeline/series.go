package timeline

import "slices"

// series is a list that grows at its end and whose views may be shared: an
// element that a view shows is never written again.
type series[T any] struct {
	items  []T
	shared int `graph:"-"` // the first so many elements are in views
	gone   int `graph:"-"` // elements before the first that take room yet
}

func (s *series[T]) len() int { return len(s.items) }

// last returns a copy of the newest element.
func (s *series[T]) last() (x T, ok bool) {
	if len(s.items) == 0 {
		return x, false
	}
	return s.items[len(s.items)-1], true
}

func (s *series[T]) append(x T) { s.items = append(s.items, x) }

// insert puts x in its place among elements that are nearly in order.
func (s *series[T]) insert(x T, before func(a, b T) bool) {
	i := len(s.items)
	for i > 0 && before(x, s.items[i-1]) {
		i--
	}
	if i == len(s.items) {
		s.append(x)
		return
	}
	s.items = slices.Insert(slices.Clone(s.items), i, x)
	s.shared = 0
}

// replaceLast writes the newest element anew.
func (s *series[T]) replaceLast(x T) {
	if n := len(s.items); n <= s.shared {
		s.items = slices.Clone(s.items)
		s.shared = 0
	}
	s.items[len(s.items)-1] = x
}

// dropLast removes the newest element.
func (s *series[T]) dropLast() {
	s.items = slices.Clone(s.items[:len(s.items)-1])
	s.shared = 0
}

// view returns what there is; it stays as it is.
func (s *series[T]) view() []T {
	s.shared = len(s.items)
	return s.items[:len(s.items):len(s.items)]
}

// viewed reports that all elements are in a view.
func (s *series[T]) viewed() bool { return s.shared == len(s.items) }

// trim drops the first n elements. Their room is given back when they are as many as
// those that stay: what is trimmed every minute is not copied every minute.
func (s *series[T]) trim(n int) {
	if n == 0 {
		return
	}
	s.items, s.shared = s.items[n:], max(0, s.shared-n)
	if s.gone += n; s.gone >= len(s.items) {
		s.items = slices.Clone(s.items)
		s.shared, s.gone = 0, 0
	}
}
