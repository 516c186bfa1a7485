package graph

import (
	"encoding"
	"errors"
	"fmt"
	"hash/fnv"
	"reflect"
	"strings"
	"time"
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

var timeType = reflect.TypeFor[time.Time]()

// marshals reports that the type writes itself: what is behind its fields is the
// business of its package (netip.Addr has a pointer that means something to its own
// process alone). A time is written here, without what allocates.
func marshals(t reflect.Type) bool {
	return t != timeType && t.Kind() == reflect.Struct &&
		t.Implements(reflect.TypeFor[encoding.BinaryAppender]()) && reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.BinaryUnmarshaler]())
}

// plan says how a type is written.
type plan struct {
	marshals bool
	fields   []int // of a struct, those that are written
}

// plans are the plans that a writer or reader has met.
type plans map[reflect.Type]*plan

func (all plans) of(t reflect.Type) *plan {
	if p := all[t]; p != nil {
		return p
	}
	p := &plan{marshals: marshals(t)}
	if t.Kind() == reflect.Struct {
		for i := range t.NumField() {
			if t.Field(i).Tag.Get(Tag) != "-" {
				p.fields = append(p.fields, i)
			}
		}
	}
	all[t] = p
	return p
}

// field gives access to an unexported field of an addressable struct.
func field(v reflect.Value, i int) reflect.Value {
	f := v.Field(i)
	if !f.CanSet() {
		f = reflect.NewAt(f.Type(), unsafe.Pointer(f.UnsafeAddr())).Elem()
	}
	return f
}

// Layout is a digest of everything that the bytes of a T depend on: the fields
// of its types and of all that can be reached from them.
func Layout[T any](types Types) uint64 {
	h := fnv.New64a()
	seen, all := map[reflect.Type]bool{}, plans{}
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
			for _, i := range all.of(t).fields {
				fmt.Fprintf(h, "%s:", t.Field(i).Name)
				say(t.Field(i).Type)
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
	at  unsafe.Pointer
	len int // of a slice
	typ reflect.Type
}

func unsupported(t reflect.Type, name string) error {
	return fmt.Errorf("%w: %s of type %s", ErrType, strings.TrimSpace("value "+name), t)
}
