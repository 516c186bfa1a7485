package graph

import (
	"encoding"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"time"
	"unsafe"
)

// Write appends the bytes of *root and all that can be reached from it to b. It
// reads unexported fields, so nothing may change them meanwhile.
func Write[T any](b []byte, root *T, types Types) ([]byte, error) {
	w := &writer{b: b, strings: map[string]uint64{}, refs: map[ref]uint64{}, names: map[reflect.Type]string{}, plans: plans{}}
	for name, t := range types {
		w.names[t] = name
	}
	// The root has a number too: what is below may point to it.
	w.refs[ref{at: unsafe.Pointer(root), typ: reflect.TypeFor[*T]()}] = 1
	if err := w.value(reflect.ValueOf(root).Elem()); err != nil {
		return b, err
	}
	for len(w.later) > 0 {
		// The latest first: the list stays short.
		v := w.later[len(w.later)-1]
		w.later = w.later[:len(w.later)-1]
		if err := w.content(v); err != nil {
			return b, err
		}
	}
	return w.b, nil
}

type writer struct {
	b       []byte
	strings map[string]uint64
	refs    map[ref]uint64
	names   map[reflect.Type]string
	plans   plans
	// later are what was met for the first time and is not written yet.
	later []reflect.Value
}

func (w *writer) uint(n uint64) { w.b = binary.AppendUvarint(w.b, n) }

// text writes a string, the second time by its number.
func (w *writer) text(s string) {
	if n, ok := w.strings[s]; ok {
		w.uint(n)
		return
	}
	w.strings[s] = uint64(len(w.strings)) + 1
	w.uint(0)
	w.uint(uint64(len(s)))
	w.b = append(w.b, s...)
}

// share writes the number of something that may be met again, and notes it for later
// when it is new. Numbers begin with 1; 0 is nil.
func (w *writer) share(r ref, v reflect.Value) (isNew bool) {
	n, ok := w.refs[r]
	if !ok {
		n = uint64(len(w.refs)) + 1
		w.refs[r] = n
		w.later = append(w.later, v)
	}
	w.uint(n)
	return !ok
}

// value writes one value; what it refers to comes later.
func (w *writer) value(v reflect.Value) error {
	t := v.Type()
	p := w.plans.of(t)
	switch {
	case t == timeType:
		return w.time(v.Interface().(time.Time))
	case p.marshals:
		b, err := v.Interface().(encoding.BinaryAppender).AppendBinary(nil)
		if err != nil {
			return fmt.Errorf("%s: %w", t, err)
		}
		w.uint(uint64(len(b)))
		w.b = append(w.b, b...)
		return nil
	}
	switch t.Kind() {
	case reflect.Bool:
		w.uint(map[bool]uint64{true: 1}[v.Bool()])
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		w.b = binary.AppendVarint(w.b, v.Int())
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		w.uint(v.Uint())
	case reflect.Float32, reflect.Float64:
		w.uint(math.Float64bits(v.Float()))
	case reflect.String:
		w.text(v.String())
	case reflect.Array:
		return w.each(v)
	case reflect.Struct:
		for _, i := range p.fields {
			if err := w.value(field(v, i)); err != nil {
				return fmt.Errorf("%s.%s: %w", t, t.Field(i).Name, err)
			}
		}
	case reflect.Pointer:
		if v.IsNil() {
			w.uint(0)
			return nil
		}
		w.share(ref{at: v.UnsafePointer(), typ: t}, v)
	case reflect.Map:
		if v.IsNil() {
			w.uint(0)
			return nil
		}
		w.share(ref{at: v.UnsafePointer(), typ: t}, v)
	case reflect.Slice:
		if v.IsNil() {
			w.uint(0)
			return nil
		}
		at := v.UnsafePointer()
		if v.Len() == 0 {
			at = nil // all empty ones are alike
		}
		if w.share(ref{at: at, len: v.Len(), typ: t}, v) {
			w.uint(uint64(v.Len()))
		}
	case reflect.Interface:
		if v.IsNil() {
			w.text("")
			return nil
		}
		name, ok := w.names[v.Elem().Type()]
		if !ok {
			return unsupported(v.Elem().Type(), "inside a "+t.String())
		}
		w.text(name)
		return w.value(addressable(v.Elem()))
	default:
		return unsupported(t, "")
	}
	return nil
}

// content writes what a pointer, map or slice refers to.
func (w *writer) content(v reflect.Value) error {
	switch v.Kind() {
	case reflect.Pointer:
		return w.value(v.Elem())
	case reflect.Slice:
		return w.each(v)
	}
	w.uint(uint64(v.Len()))
	for i := v.MapRange(); i.Next(); {
		for _, x := range []reflect.Value{i.Key(), i.Value()} {
			if err := w.value(addressable(x)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *writer) each(v reflect.Value) error {
	if v.Type().Elem().Kind() == reflect.Uint8 && v.Kind() == reflect.Slice {
		w.b = append(w.b, v.Bytes()...)
		return nil
	}
	for i := range v.Len() {
		if err := w.value(v.Index(i)); err != nil {
			return err
		}
	}
	return nil
}

// time writes seconds and nanoseconds in UTC: the zone is for those who show it, and
// no monotonic reading lasts longer than its process.
func (w *writer) time(t time.Time) error {
	if t.IsZero() {
		w.uint(0)
		return nil
	}
	w.uint(uint64(t.Nanosecond()) + 1)
	w.b = binary.AppendVarint(w.b, t.Unix())
	return nil
}

// addressable gives a copy whose unexported fields may be read.
func addressable(v reflect.Value) reflect.Value {
	if v.CanAddr() {
		return v
	}
	c := reflect.New(v.Type()).Elem()
	c.Set(v)
	return c
}

func (t Types) names() []string { return slices.Sorted(maps.Keys(t)) }
