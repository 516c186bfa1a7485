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
	w := &writer{b: b, strings: map[string]uint64{}, refs: map[ref]uint64{}, times: map[time.Time]uint64{}, names: map[reflect.Type]string{}}
	for name, t := range types {
		w.names[t] = name
	}
	// The root has a number too: what is below may point to it.
	p := planOf(reflect.TypeFor[*T]())
	w.refs[ref{at: unsafe.Pointer(root), plan: p}] = 1
	if err := w.value(p.elem, unsafe.Pointer(root)); err != nil {
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
	strings map[string]uint64
	refs    map[ref]uint64
	times   map[time.Time]uint64
	last    int64 // the latest new time, in nanoseconds
	names   map[reflect.Type]string
	// later are what was met for the first time and is not written yet.
	later []ref
}

func (w *writer) uint(n uint64) { w.b = binary.AppendUvarint(w.b, n) }
func (w *writer) int(n int64)   { w.b = binary.AppendVarint(w.b, n) }

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

// share writes something that may be met again, and notes it for later when it is new.
func (w *writer) share(r ref) (isNew bool) {
	next := uint64(len(w.refs)) + 1
	if n, ok := w.refs[r]; ok {
		w.uint(next - n + 1)
		return false
	}
	w.refs[r] = next
	w.later = append(w.later, r)
	w.uint(1)
	return true
}

// value writes the value at an address; what it refers to comes later.
func (w *writer) value(p *plan, at unsafe.Pointer) error {
	switch p.op {
	case opTime:
		w.time(*(*time.Time)(at))
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
		w.text(*(*string)(at))
	case opArray:
		return w.each(p.elem, at, p.n)
	case opStruct:
		for i := range p.fields {
			f := &p.fields[i]
			if err := w.value(f.plan, unsafe.Add(at, f.offset)); err != nil {
				return fmt.Errorf("%s: %w", f.name, err)
			}
		}
	case opPointer, opMap:
		x := *(*unsafe.Pointer)(at)
		if x == nil {
			w.uint(0)
			return nil
		}
		w.share(ref{at: x, plan: p})
	case opSlice:
		h := *(*sliceHeader)(at)
		if h.at == nil {
			w.uint(0)
			return nil
		}
		if h.len == 0 {
			h.at = nil // all empty ones are alike
		}
		if w.share(ref{at: h.at, len: h.len, plan: p}) {
			w.uint(uint64(h.len))
		}
	case opInterface:
		return w.boxed(reflect.NewAt(p.typ, at).Elem())
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
func (w *writer) boxed(v reflect.Value) error {
	if v.IsNil() {
		w.text("")
		return nil
	}
	t := v.Elem().Type()
	name, ok := w.names[t]
	if !ok {
		return unsupported(t, "inside a "+v.Type().String())
	}
	w.text(name)
	c := reflect.New(t)
	c.Elem().Set(v.Elem())
	return w.value(planOf(t), c.UnsafePointer())
}

// content writes what a pointer, map or slice refers to.
func (w *writer) content(r ref) error {
	switch r.plan.op {
	case opPointer:
		return w.value(r.plan.elem, r.at)
	case opSlice:
		return w.each(r.plan.elem, r.at, r.len)
	}
	at := r.at
	m := reflect.NewAt(r.plan.typ, unsafe.Pointer(&at)).Elem()
	w.uint(uint64(m.Len()))
	key, elem := reflect.New(r.plan.key.typ), reflect.New(r.plan.elem.typ)
	for i := m.MapRange(); i.Next(); {
		key.Elem().SetIterKey(i)
		elem.Elem().SetIterValue(i)
		if err := w.value(r.plan.key, key.UnsafePointer()); err != nil {
			return err
		}
		if err := w.value(r.plan.elem, elem.UnsafePointer()); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) each(p *plan, at unsafe.Pointer, n int) error {
	if p.op == opUint8 {
		w.b = append(w.b, unsafe.Slice((*byte)(at), n)...)
		return nil
	}
	for i := range n {
		if err := w.value(p, unsafe.Add(at, uintptr(i)*p.size)); err != nil {
			return err
		}
	}
	return nil
}

// time writes a time in UTC: the zone is for those who show it, and no monotonic
// reading lasts longer than its process. A new one is written as the time since the
// last new one, or as seconds and nanoseconds where that is too long.
func (w *writer) time(t time.Time) {
	if t.IsZero() {
		w.uint(0)
		return
	}
	t = t.Round(0).UTC()
	next := uint64(len(w.times)) + 1
	if n, ok := w.times[t]; ok {
		w.uint(next - n + 1)
		return
	}
	w.times[t] = next
	w.uint(1)
	if y := t.Year(); y < firstYear || y > lastYear {
		w.uint(0)
		w.int(t.Unix())
		w.uint(uint64(t.Nanosecond()))
		return
	}
	now := t.UnixNano()
	d := now - w.last
	w.last = now
	w.uint(1 + (uint64(d<<1) ^ uint64(d>>63)))
}

// Times between these years are written in nanoseconds: the difference of two of them
// is less than an int64 has room for, twice.
const firstYear, lastYear = 1970, 2100

func (t Types) names() []string { return slices.Sorted(maps.Keys(t)) }
