package graph

import (
	"errors"
	"fmt"
	"hash/fnv"
	"reflect"
	"strings"
	"unsafe"
)

// Tag marks struct fields that are left out, and are zero after Read: caches.
//
//	view *View `graph:"-"`
const Tag = "graph"

// Types are the concrete types that interfaces may hold, by a name that stays the
// same: what Write meets inside an interface must be among them.
type Types map[string]reflect.Type

var (
	// ErrDamaged is wrapped by every error about bytes that Write cannot have
	// written.
	ErrDamaged = errors.New("damaged")
	// ErrType is wrapped by the errors about values that cannot be written: a
	// func, a channel, a type inside an interface that Types does not have.
	ErrType = errors.New("cannot be written")
)

// format names how the bytes are made of the values. Numbers are varints.
//
// What is shared, and a time, is written where it is met first and afterwards by how
// many others were met since: most is met again soon, and what happened at one moment
// stands in many places. So 0 is nil, or the zero time, 1 something new, and n
// what was met n-1 before the next.
const format = "graph/2"

// Layout is a digest of everything that the bytes of a T depend on: the fields
// of its types and of all that can be reached from them.
func Layout[T any](types Types) uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s;", format)
	seen := map[reflect.Type]bool{}
	var say func(t reflect.Type)
	say = func(t reflect.Type) {
		fmt.Fprintf(h, "%s %s;", t, t.Kind())
		if seen[t] || t == timeType || marshals(t) {
			return
		}
		seen[t] = true
		switch t.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Array:
			say(t.Elem())
		case reflect.Map:
			say(t.Key())
			say(t.Elem())
		case reflect.Struct:
			for i := range t.NumField() {
				if t.Field(i).Tag.Get(Tag) != "-" {
					fmt.Fprintf(h, "%s:", t.Field(i).Name)
					say(t.Field(i).Type)
				}
			}
		}
	}
	say(reflect.TypeFor[T]())
	for _, name := range types.names() {
		fmt.Fprintf(h, "%s=", name)
		say(types[name])
	}
	return h.Sum64()
}

// ref is what is shared: a pointer's target, a map, or the elements of a slice.
type ref struct {
	at   unsafe.Pointer
	len  int // of a slice
	plan *plan
}

// sliceHeader is how a slice lies in memory.
type sliceHeader struct {
	at       unsafe.Pointer
	len, cap int
}

func unsupported(t reflect.Type, name string) error {
	return fmt.Errorf("%w: %s of type %s", ErrType, strings.TrimSpace("value "+name), t)
}
