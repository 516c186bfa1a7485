package graph

import (
	"encoding"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"math/bits"
	"reflect"
	"slices"
	"time"
	"unsafe"
)

// Write appends the bytes of *root and all that can be reached from it to b. It
// reads unexported fields, so nothing may change them meanwhile.
func Write[T any](b []byte, root *T, types Types) ([]byte, error) {
	return NewWriter[T](types).Write(b, root)
}

// Writer writes a root several times, while it changes: what has not changed is mostly
// written as it was before. It keeps all that it has met from being freed.
type Writer[T any] struct {
	types Types
	w     *writer
}

// NewWriter returns a Writer that has met nothing.
func NewWriter[T any](types Types) *Writer[T] { return &Writer[T]{types, newWriter(types)} }

// Write is the function Write.
func (x *Writer[T]) Write(b []byte, root *T) ([]byte, error) {
	out, err := write(x.w, b, root)
	if err == nil && x.w.numbers() > len(out)-len(b) {
		// Most that has a number is gone: a reader would not believe them.
		x.w = newWriter(x.types)
		out, err = write(x.w, out[:len(b)], root)
	}
	return out, err
}

func write[T any](w *writer, b []byte, root *T) ([]byte, error) {
	w.begin(b)
	// The root has a number too: what is below may point to it.
	p := planOf(reflect.TypeFor[*T]())
	mention(w, &w.refs, ref{at: unsafe.Pointer(root), plan: p}, 0)
	if err := w.parts(p.each, unsafe.Pointer(root)); err != nil {
		return b, err
	}
	for len(w.later) > 0 {
		// The latest first: the list stays short.
		x := w.later[len(w.later)-1]
		w.later = w.later[:len(w.later)-1]
		if err := w.content(x); err != nil {
			return b, err
		}
	}
	return w.b, nil
}

type writer struct {
	b       []byte
	strings met[string]
	refs    met[ref]
	times   met[time.Time]
	last    int64 // the latest new time, in nanoseconds
	names   map[reflect.Type]string
	// later are what was met for the first time and is not written yet.
	later []ref
	rooms map[*plan]*entries
}

func newWriter(types Types) *writer {
	w := &writer{strings: newMet[string](), refs: newMet[ref](), times: newMet[time.Time](), names: map[reflect.Type]string{}, rooms: map[*plan]*entries{}}
	for name, t := range types {
		w.names[t] = name
	}
	return w
}

// begin begins to write a root.
func (w *writer) begin(b []byte) {
	w.b, w.last, w.later = b, 0, w.later[:0]
	w.strings.begin()
	w.refs.begin()
	w.times.begin()
}

// numbers is how many numbers there are of the kind that has most.
func (w *writer) numbers() int { return max(len(w.strings.of), len(w.refs.of), len(w.times.of)) }

// met is what was met of one kind: its numbers, with which root each was written last,
// and which one each place had.
type met[T comparable] struct {
	of    map[T]uint32
	with  []uint32 // by number
	root  uint32
	next  int64 // after the last new one
	place []int64
}

func newMet[T comparable]() met[T] { return met[T]{of: map[T]uint32{}} }

func (x *met[T]) begin() {
	x.root++
	x.next = 0
	clear(x.place)
}

// mention writes the code of something; when it is new it is to follow.
func mention[T comparable](w *writer, x *met[T], is T, place int) (isNew bool) {
	if place >= len(x.place) {
		x.place = append(x.place, make([]int64, place+1-len(x.place))...)
	}
	number, known := x.of[is]
	if !known {
		number = uint32(len(x.of))
		x.of[is], x.with = number, append(x.with, 0)
	}
	n := int64(number)
	if isNew = x.with[n] != x.root; isNew {
		x.with[n] = x.root
		w.uint(codeNew)
		w.uint(zigzag(n - x.next))
		x.next = n + 1
	} else {
		w.uint(codeKnown + zigzag(n-x.place[place]))
	}
	x.place[place] = n
	return isNew
}

func (w *writer) uint(n uint64) { w.b = binary.AppendUvarint(w.b, n) }
func (w *writer) int(n int64)   { w.b = binary.AppendVarint(w.b, n) }

// text writes a string.
func (w *writer) text(s string, place int) {
	if s == "" {
		w.uint(codeNil)
	} else if mention(w, &w.strings, s, place) {
		w.uint(uint64(len(s)))
		w.b = append(w.b, s...)
	}
}

// share writes something that may be met again, and notes it for later when it is new.
func (w *writer) share(r ref, place int) (isNew bool) {
	if isNew = mention(w, &w.refs, r, place); isNew {
		w.later = append(w.later, r)
	}
	return isNew
}

// parts writes the parts of what is at an address; what they refer to comes later.
func (w *writer) parts(parts []part, base unsafe.Pointer) error {
	if len(parts) == 1 {
		return w.part(&parts[0], base)
	}
	for len(parts) > 0 {
		some := parts[:min(len(parts), maskParts)]
		parts = parts[len(some):]
		mask := uint64(0)
		for i := range some {
			if !some[i].zero(base) {
				mask |= 1 << i
			}
		}
		w.uint(mask)
		for ; mask != 0; mask &= mask - 1 {
			if p := &some[bits.TrailingZeros64(mask)]; p.op != opBool {
				if err := w.part(p, base); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (w *writer) part(p *part, base unsafe.Pointer) error {
	err := w.value(p.plan, unsafe.Add(base, p.offset), p.place)
	if err != nil && p.name != "" {
		err = fmt.Errorf("%s: %w", p.name, err)
	}
	return err
}

// zero tells that nothing but zeros is in memory.
func (p *part) zero(base unsafe.Pointer) bool {
	at := unsafe.Add(base, p.offset)
	if p.size == 8 {
		return *(*uint64)(at) == 0
	}
	for _, b := range unsafe.Slice((*byte)(at), p.size) {
		if b != 0 {
			return false
		}
	}
	return true
}

// value writes a value that stands in a place.
func (w *writer) value(p *plan, at unsafe.Pointer, place int) error {
	switch p.op {
	case opTime:
		w.time(*(*time.Time)(at), place)
	case opMarshal:
		return w.marshal(p, at)
	case opBool:
		n := uint64(0)
		if *(*bool)(at) {
			n = 1
		}
		w.uint(n)
	case opInt8:
		w.int(int64(*(*int8)(at)))
	case opInt16:
		w.int(int64(*(*int16)(at)))
	case opInt32:
		w.int(int64(*(*int32)(at)))
	case opInt64:
		w.int(*(*int64)(at))
	case opUint8:
		w.uint(uint64(*(*uint8)(at)))
	case opUint16:
		w.uint(uint64(*(*uint16)(at)))
	case opUint32:
		w.uint(uint64(*(*uint32)(at)))
	case opUint64:
		w.uint(*(*uint64)(at))
	case opFloat32:
		w.uint(math.Float64bits(float64(*(*float32)(at))))
	case opFloat64:
		w.uint(math.Float64bits(*(*float64)(at)))
	case opString:
		w.text(*(*string)(at), place)
	case opArray:
		return w.each(p, at, p.n)
	case opPointer, opMap:
		x := *(*unsafe.Pointer)(at)
		if x == nil {
			w.uint(codeNil)
			return nil
		}
		w.share(ref{at: x, plan: p}, place)
	case opSlice:
		h := *(*sliceHeader)(at)
		if h.at == nil {
			w.uint(codeNil)
			return nil
		}
		if h.len == 0 {
			h.at = nil // all empty ones are alike
		}
		if w.share(ref{at: h.at, len: h.len, plan: p}, place) {
			w.uint(uint64(h.len))
		}
	case opInterface:
		return w.boxed(reflect.NewAt(p.typ, at).Elem(), place)
	default:
		return unsupported(p.typ, "")
	}
	return nil
}

// marshal writes what writes itself, after its length, which is short.
func (w *writer) marshal(p *plan, at unsafe.Pointer) error {
	start := len(w.b)
	w.b = append(w.b, 0)
	b, err := reflect.NewAt(p.typ, at).Interface().(encoding.BinaryAppender).AppendBinary(w.b)
	if err != nil {
		return fmt.Errorf("%s: %w", p.typ, err)
	}
	n := len(b) - start - 1
	if n < 0x80 {
		b[start] = byte(n)
		w.b = b
		return nil
	}
	long := slices.Clone(b[start+1:])
	w.b = append(binary.AppendUvarint(b[:start], uint64(n)), long...)
	return nil
}

// boxed writes what an interface holds, after its name.
func (w *writer) boxed(v reflect.Value, place int) error {
	if v.IsNil() {
		w.text("", place)
		return nil
	}
	t := v.Elem().Type()
	name, ok := w.names[t]
	if !ok {
		return unsupported(t, "inside a "+v.Type().String())
	}
	w.text(name, place)
	c := reflect.New(t)
	c.Elem().Set(v.Elem())
	return w.parts(planOf(t).self, c.UnsafePointer())
}

// content writes what a pointer, map or slice refers to.
func (w *writer) content(r ref) error {
	switch r.plan.op {
	case opPointer:
		return w.parts(r.plan.each, r.at)
	case opSlice:
		return w.each(r.plan, r.at, r.len)
	}
	at := r.at
	m := reflect.NewAt(r.plan.typ, unsafe.Pointer(&at)).Elem()
	w.uint(uint64(m.Len()))
	for key, elem := range w.ordered(r.plan, m) {
		if err := w.parts(r.plan.keys, key); err != nil {
			return err
		}
		if err := w.parts(r.plan.each, elem); err != nil {
			return err
		}
	}
	return nil
}

// each writes the elements of a slice or an array.
func (w *writer) each(p *plan, at unsafe.Pointer, n int) error {
	if p.elem.op == opUint8 {
		w.b = append(w.b, unsafe.Slice((*byte)(at), n)...)
		return nil
	}
	for i := range n {
		if err := w.parts(p.each, unsafe.Add(at, uintptr(i)*p.elem.size)); err != nil {
			return err
		}
	}
	return nil
}

// time writes a time in UTC: the zone is for those who show it, and no monotonic
// reading lasts longer than its process. A new one is written as the time since the
// last new one, or as seconds and nanoseconds where that is too long.
func (w *writer) time(t time.Time, place int) {
	if t.IsZero() {
		w.uint(codeNil)
		return
	}
	t = t.Round(0).UTC()
	if !mention(w, &w.times, t, place) {
		return
	}
	if y := t.Year(); y < firstYear || y > lastYear {
		w.uint(0)
		w.int(t.Unix())
		w.uint(uint64(t.Nanosecond()))
		return
	}
	now := t.UnixNano()
	d := now - w.last
	w.last = now
	w.uint(1 + zigzag(d))
}

// Times between these years are written in nanoseconds: the difference of two of them
// is less than an int64 has room for, twice.
const firstYear, lastYear = 1970, 2100

func (t Types) names() []string { return slices.Sorted(maps.Keys(t)) }
