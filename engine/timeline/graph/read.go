package graph

import (
	"encoding"
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
	"time"
	"unsafe"
)

// Read fills *root, which must be zero, with what Write wrote of one of the same
// Layout. Any bytes are safe: what Write cannot have written is an error that wraps
// ErrDamaged, and takes no more memory than some multiple of the bytes.
func Read[T any](b []byte, root *T, types Types) error {
	r := &reader{b: b, size: len(b), types: types, texts: []string{""}, rooms: map[*plan]*room{}}
	p := planOf(reflect.TypeFor[*T]())
	r.refs = append(r.refs, ref{at: unsafe.Pointer(root), plan: p})
	r.value(p.elem, unsafe.Pointer(root))
	for len(r.later) > 0 && r.err == nil {
		x := r.later[len(r.later)-1]
		r.later = r.later[:len(r.later)-1]
		r.content(x)
	}
	if r.err == nil && len(r.b) > 0 {
		r.fail("%d bytes too many", len(r.b))
	}
	return r.err
}

type reader struct {
	b     []byte
	types Types
	texts []string
	times []time.Time
	last  int64
	refs  []ref
	later []ref
	rooms map[*plan]*room
	// owed counts the elements of all slices; each takes a byte at least, so
	// they are fewer than size.
	owed, size int
	err        error // the first one; after it all that is read is zero
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("%w: "+format, append([]any{ErrDamaged}, args...)...)
	}
	r.b = nil
}

func (r *reader) uint() uint64 {
	if len(r.b) > 0 && r.b[0] < 0x80 {
		n := r.b[0]
		r.b = r.b[1:]
		return uint64(n)
	}
	n, size := binary.Uvarint(r.b)
	if size <= 0 {
		r.fail("a number is cut off")
		return 0
	}
	r.b = r.b[size:]
	return n
}

func (r *reader) int() int64 {
	u := r.uint()
	return int64(u>>1) ^ -int64(u&1)
}

// length reads how many things follow, each of which takes at least one byte.
func (r *reader) length() int {
	n := r.uint()
	if n > uint64(len(r.b)) {
		r.fail("%d things announced, %d bytes left", n, len(r.b))
		return 0
	}
	return int(n)
}

func (r *reader) take(n int) []byte {
	b := r.b[:n:n]
	r.b = r.b[n:]
	return b
}

func (r *reader) text() string {
	n := r.uint()
	if n > 0 {
		if n >= uint64(len(r.texts)) {
			r.fail("text %d of %d", n, len(r.texts)-1)
			return ""
		}
		return r.texts[n]
	}
	if r.err != nil {
		return ""
	}
	s := string(r.take(r.length()))
	r.texts = append(r.texts, s)
	return s
}

// room is where new values of a type are put, several at once: most things are small,
// and there are very many.
type room struct {
	at       unsafe.Pointer
	left, by int
}

// roomFor is the most values that are made at once.
const roomFor = 32

// make gives n zero values that lie behind each other.
func (r *reader) make(p *plan, n int) unsafe.Pointer {
	if n == 0 || n > roomFor/2 || p.size == 0 {
		return reflect.MakeSlice(reflect.SliceOf(p.typ), n, n).UnsafePointer()
	}
	x := r.rooms[p]
	if x == nil {
		x = &room{by: 1}
		r.rooms[p] = x
	}
	if x.left < n {
		x.by = min(2*max(x.by, n), roomFor) // what is left stays empty
		x.at, x.left = reflect.MakeSlice(reflect.SliceOf(p.typ), x.by, x.by).UnsafePointer(), x.by
	}
	at := x.at
	if x.left -= n; x.left > 0 {
		x.at = unsafe.Add(at, uintptr(n)*p.size)
	} else {
		x.at = nil
	}
	return at
}

// share reads the number of something shared, and makes it when it is new; its content
// comes later. There is none when it is nil.
func (r *reader) share(p *plan) (x ref, ok bool) {
	n := r.uint()
	switch {
	case r.err != nil || n == 0:
		return x, false
	case n > uint64(len(r.refs))+1:
		r.fail("a reference to %d before, of %d", n-1, len(r.refs))
		return x, false
	case n > 1:
		if x = r.refs[uint64(len(r.refs))-n+1]; x.plan != p {
			r.fail("a %s where a %s belongs", x.plan.typ, p.typ)
			return x, false
		}
		return x, true
	}
	x.plan = p
	switch p.op {
	case opPointer:
		x.at = r.make(p.elem, 1)
	case opMap:
		x.at = reflect.MakeMap(p.typ).UnsafePointer()
	case opSlice:
		x.len = r.length()
		if r.owed += x.len; r.owed > r.size {
			r.fail("more announced than there is")
		}
		if r.err != nil {
			return x, false
		}
		x.at = r.make(p.elem, x.len)
	}
	r.refs, r.later = append(r.refs, x), append(r.later, x)
	return x, true
}

// value reads the value at an address, which is zero.
func (r *reader) value(p *plan, at unsafe.Pointer) {
	switch p.op {
	case opTime:
		r.time((*time.Time)(at))
	case opMarshal:
		b := r.take(r.length())
		if r.err != nil {
			return
		}
		if err := reflect.NewAt(p.typ, at).Interface().(encoding.BinaryUnmarshaler).UnmarshalBinary(b); err != nil {
			r.fail("%s: %w", p.typ, err)
		}
	case opBool:
		*(*bool)(at) = r.uint() != 0
	case opInt8:
		*(*int8)(at) = int8(r.int())
	case opInt16:
		*(*int16)(at) = int16(r.int())
	case opInt32:
		*(*int32)(at) = int32(r.int())
	case opInt64:
		*(*int64)(at) = r.int()
	case opUint8:
		*(*uint8)(at) = uint8(r.uint())
	case opUint16:
		*(*uint16)(at) = uint16(r.uint())
	case opUint32:
		*(*uint32)(at) = uint32(r.uint())
	case opUint64:
		*(*uint64)(at) = r.uint()
	case opFloat32:
		*(*float32)(at) = float32(math.Float64frombits(r.uint()))
	case opFloat64:
		*(*float64)(at) = math.Float64frombits(r.uint())
	case opString:
		*(*string)(at) = r.text()
	case opArray:
		r.each(p.elem, at, p.n)
	case opStruct:
		for i := range p.fields {
			f := &p.fields[i]
			r.value(f.plan, unsafe.Add(at, f.offset))
		}
	case opPointer, opMap:
		if x, ok := r.share(p); ok {
			*(*unsafe.Pointer)(at) = x.at
		}
	case opSlice:
		if x, ok := r.share(p); ok {
			*(*sliceHeader)(at) = sliceHeader{x.at, x.len, x.len}
		}
	case opInterface:
		r.boxed(reflect.NewAt(p.typ, at).Elem())
	default:
		if r.err == nil {
			r.err = unsupported(p.typ, "")
		}
	}
}

// boxed reads what an interface holds.
func (r *reader) boxed(v reflect.Value) {
	name := r.text()
	if name == "" {
		return
	}
	t, ok := r.types[name]
	if !ok || !t.Implements(v.Type()) {
		r.fail("a %q inside a %s", name, v.Type())
		return
	}
	x := reflect.New(t)
	r.value(planOf(t), x.UnsafePointer())
	v.Set(x.Elem())
}

// content reads what a pointer, map or slice refers to.
func (r *reader) content(x ref) {
	switch x.plan.op {
	case opPointer:
		r.value(x.plan.elem, x.at)
		return
	case opSlice:
		r.each(x.plan.elem, x.at, x.len)
		return
	}
	n := r.length()
	at := x.at
	m := reflect.NewAt(x.plan.typ, unsafe.Pointer(&at)).Elem()
	key, elem := reflect.New(x.plan.key.typ), reflect.New(x.plan.elem.typ)
	for i := 0; i < n && r.err == nil; i++ {
		key.Elem().SetZero()
		elem.Elem().SetZero()
		r.value(x.plan.key, key.UnsafePointer())
		r.value(x.plan.elem, elem.UnsafePointer())
		if r.err == nil {
			m.SetMapIndex(key.Elem(), elem.Elem())
		}
	}
}

func (r *reader) each(p *plan, at unsafe.Pointer, n int) {
	if p.op == opUint8 {
		if n > len(r.b) {
			r.fail("bytes are cut off")
			return
		}
		copy(unsafe.Slice((*byte)(at), n), r.take(n))
		return
	}
	for i := 0; i < n && r.err == nil; i++ {
		r.value(p, unsafe.Add(at, uintptr(i)*p.size))
	}
}

func (r *reader) time(t *time.Time) {
	n := r.uint()
	switch {
	case n == 0:
		return
	case n > uint64(len(r.times))+1:
		r.fail("a time %d before, of %d", n-1, len(r.times))
		return
	case n > 1:
		*t = r.times[uint64(len(r.times))-n+1]
		return
	}
	if d := r.uint(); d > 0 {
		d--
		r.last += int64(d>>1) ^ -int64(d&1)
		*t = time.Unix(0, r.last).UTC()
	} else {
		sec, nano := r.int(), r.uint()
		if nano >= 1e9 {
			r.fail("a time")
			return
		}
		*t = time.Unix(sec, int64(nano)).UTC()
	}
	r.times = append(r.times, *t)
}
