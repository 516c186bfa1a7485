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
// What is shared, a text and a time have numbers. They are written where they are met
// first, and afterwards by their number (codes). That is told by how far it is from the
// one that the same field of a struct, or any element, had before: what has not changed
// is mostly written as it was, whatever was added or is gone elsewhere.
//
// Several parts come after a number whose bits tell which of them are not zero, at most
// maskParts at a time; the others are left out, and of a bool there is no more than that.
const format = "graph/3"

// maskParts fit into a number of four bytes.
const maskParts = 28

// Codes of something that may be met again.
const (
	codeNil   = iota // nil, the empty text, the zero time
	codeNew          // its number follows, from the next one after the last new one; and it
	codeKnown        // and above: the difference of the numbers
)

// zigzag makes a small number of one that is near zero.
func zigzag(n int64) uint64 { return uint64(n<<1) ^ uint64(n>>63) }
func zagzig(n uint64) int64 { return int64(n>>1) ^ -int64(n&1) }

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
