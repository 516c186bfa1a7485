package graph

import (
	"encoding"
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"net/netip"
	"reflect"
	"slices"
	"time"
	"unsafe"
)

// Read fills *root, which must be zero, with what Write wrote of one of the same
// Layout. Any bytes are safe: what Write cannot have written is an error that wraps
// ErrDamaged, and takes no more memory than some multiple of the bytes.
func Read[T any](b []byte, root *T, types Types) error {
	r := &reader{b: b, types: types}
	// About as many as there are in a large model.
	r.refs, r.texts, r.times = make([]ref, 0, len(b)/32), make([]string, 0, len(b)/128), make([]time.Time, 0, len(b)/128)
	p := planOf(reflect.TypeFor[*T]())
	if n, isNew := r.which(&r.ofRefs, 0); isNew {
		*at(&r.refs, n) = ref{at: unsafe.Pointer(root), plan: p}
	} else {
		r.fail("no root")
	}
	r.parts(p.each, unsafe.Pointer(root))
	for len(r.later) > 0 && r.err == nil {
		x := r.later[len(r.later)-1]
		r.later = r.later[:len(r.later)-1]
		r.content(x)
	}
	if r.err == nil && r.i < len(r.b) {
		r.fail("%d bytes too many", len(r.b)-r.i)
	}
	return r.err
}

type reader struct {
	b     []byte
	i     int // read so far
	types Types
	texts []string
	times []time.Time
	refs  []ref
	// ofTexts, ofTimes and ofRefs are their numbers.
	ofTexts, ofTimes, ofRefs numbers

	last  int64
	later []ref
	rooms []room // by plan
	// owed counts the elements of all slices; each takes a byte at least, so
	// they are fewer than the bytes.
	owed int
	err  error // the first one; after it all that is read is zero
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("%w: "+format, append([]any{ErrDamaged}, args...)...)
	}
	r.i = len(r.b)
}

func (r *reader) uint() uint64 {
	if r.i < len(r.b) && r.b[r.i] < 0x80 {
		r.i++
		return uint64(r.b[r.i-1])
	}
	if r.i+1 < len(r.b) && r.b[r.i+1] < 0x80 {
		r.i += 2
		return uint64(r.b[r.i-2]&0x7f) | uint64(r.b[r.i-1])<<7
	}
	n, size := binary.Uvarint(r.b[r.i:])
	if size <= 0 {
		r.fail("a number is cut off")
		return 0
	}
	r.i += size
	return n
}

func (r *reader) int() int64 {
	return zagzig(r.uint())
}

// length reads how many things follow, each of which takes at least one byte.
func (r *reader) length() int {
	n := r.uint()
	if n > uint64(len(r.b)-r.i) {
		r.fail("%d things announced, %d bytes left", n, len(r.b)-r.i)
		return 0
	}
	return int(n)
}

func (r *reader) take(n int) []byte {
	r.i += n
	return r.b[r.i-n : r.i : r.i]
}

// numbers are those of one kind.
type numbers struct {
	next  int64   // after the last new one
	place []int64 // which one each place had
}

// which reads the code of something and gives its number; -1 where there is none. What
// is new follows.
func (r *reader) which(x *numbers, place int) (n int, isNew bool) {
	code := r.uint()
	if code == codeNil {
		return -1, false
	}
	if place >= len(x.place) {
		x.place = append(x.place, make([]int64, place+1-len(x.place))...)
	}
	number := int64(0)
	if isNew = code == codeNew; isNew {
		number = x.next + zagzig(r.uint())
		x.next = number + 1
	} else {
		number = x.place[place] + zagzig(code-codeKnown)
	}
	if number < 0 || number >= int64(len(r.b)) {
		r.fail("number %d", number)
		return -1, false
	}
	x.place[place] = number
	return int(number), isNew
}

// at makes room for the element with a number.
func at[T any](list *[]T, n int) *T {
	if n >= len(*list) {
		*list = slices.Grow(*list, n+1-len(*list))[:n+1]
	}
	return &(*list)[n]
}

func (r *reader) text(place int) string {
	n, isNew := r.which(&r.ofTexts, place)
	if n < 0 {
		return ""
	}
	s := at(&r.texts, n)
	if isNew {
		*s = string(r.take(r.length()))
	} else if *s == "" {
		r.fail("text %d was not told", n)
	}
	return *s
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
	x := at(&r.rooms, p.number)
	if x.left < n {
		x.by = min(max(2*x.by, n), roomFor) // what is left stays empty
		x.at, x.left = reflect.MakeSlice(reflect.SliceOf(p.typ), x.by, x.by).UnsafePointer(), x.by
	}
	values := x.at
	if x.left -= n; x.left > 0 {
		x.at = unsafe.Add(values, uintptr(n)*p.size)
	} else {
		x.at = nil
	}
	return values
}

// share reads the number of something shared, and makes it when it is new; its content
// comes later. There is none when it is nil.
func (r *reader) share(p *plan, place int) (x ref, ok bool) {
	n, isNew := r.which(&r.ofRefs, place)
	if n < 0 {
		return x, false
	}
	met := at(&r.refs, n)
	switch x = *met; {
	case isNew && x.plan != nil:
		r.fail("number %d is told twice", n)
		return x, false
	case !isNew && x.plan == nil:
		r.fail("number %d was not told", n)
		return x, false
	case !isNew && x.plan != p:
		r.fail("a %s where a %s belongs", x.plan.typ, p.typ)
		return x, false
	case !isNew:
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
		if r.owed += x.len; r.owed > len(r.b) {
			r.fail("more announced than there is")
		}
		if r.err != nil {
			return x, false
		}
		x.at = r.make(p.elem, x.len)
	}
	*met, r.later = x, append(r.later, x)
	return x, true
}

// parts reads the parts of what is at an address, which is zero.
func (r *reader) parts(parts []part, base unsafe.Pointer) {
	if len(parts) == 1 {
		r.part(&parts[0], unsafe.Add(base, parts[0].offset))
		return
	}
	for len(parts) > 0 {
		some := parts[:min(len(parts), maskParts)]
		parts = parts[len(some):]
		mask := r.uint()
		if mask>>len(some) != 0 {
			r.fail("parts that there are not")
			return
		}
		for ; mask != 0; mask &= mask - 1 {
			p := &some[bits.TrailingZeros64(mask)]
			if at := unsafe.Add(base, p.offset); p.op == opBool {
				*(*bool)(at) = true
			} else {
				r.part(p, at)
			}
		}
	}
}

func (r *reader) part(p *part, at unsafe.Pointer) {
	switch p.op {
	case opTime:
		r.time((*time.Time)(at), p.place)
	case opMarshal:
		b := r.take(r.length())
		if r.err != nil {
			return
		}
		var err error
		if p.typ == addrType { // by far the most
			err = (*netip.Addr)(at).UnmarshalBinary(b)
		} else {
			err = reflect.NewAt(p.typ, at).Interface().(encoding.BinaryUnmarshaler).UnmarshalBinary(b)
		}
		if err != nil {
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
		*(*string)(at) = r.text(p.place)
	case opArray:
		r.each(p.plan, at, p.n)
	case opPointer, opMap:
		if x, ok := r.share(p.plan, p.place); ok {
			*(*unsafe.Pointer)(at) = x.at
		}
	case opSlice:
		if x, ok := r.share(p.plan, p.place); ok {
			*(*sliceHeader)(at) = sliceHeader{x.at, x.len, x.len}
		}
	case opInterface:
		r.boxed(reflect.NewAt(p.typ, at).Elem(), p.place)
	default:
		if r.err == nil {
			r.err = unsupported(p.typ, "")
		}
	}
}

// boxed reads what an interface holds.
func (r *reader) boxed(v reflect.Value, place int) {
	name := r.text(place)
	if name == "" {
		return
	}
	t, ok := r.types[name]
	if !ok || !t.Implements(v.Type()) {
		r.fail("a %q inside a %s", name, v.Type())
		return
	}
	x := reflect.New(t)
	r.parts(planOf(t).self, x.UnsafePointer())
	v.Set(x.Elem())
}

// content reads what a pointer, map or slice refers to.
func (r *reader) content(x ref) {
	switch x.plan.op {
	case opPointer:
		r.parts(x.plan.each, x.at)
		return
	case opSlice:
		r.each(x.plan, x.at, x.len)
		return
	}
	n := r.length()
	at := x.at
	m := reflect.NewAt(x.plan.typ, unsafe.Pointer(&at)).Elem()
	key, elem := reflect.New(x.plan.key.typ), reflect.New(x.plan.elem.typ)
	for i := 0; i < n && r.err == nil; i++ {
		key.Elem().SetZero()
		elem.Elem().SetZero()
		r.parts(x.plan.keys, key.UnsafePointer())
		r.parts(x.plan.each, elem.UnsafePointer())
		if r.err == nil {
			m.SetMapIndex(key.Elem(), elem.Elem())
		}
	}
}

// each reads the elements of a slice or an array.
func (r *reader) each(p *plan, at unsafe.Pointer, n int) {
	if p.elem.op == opUint8 {
		if n > len(r.b)-r.i {
			r.fail("bytes are cut off")
			return
		}
		copy(unsafe.Slice((*byte)(at), n), r.take(n))
		return
	}
	for i := 0; i < n && r.err == nil; i++ {
		r.parts(p.each, unsafe.Add(at, uintptr(i)*p.elem.size))
	}
}

func (r *reader) time(t *time.Time, place int) {
	n, isNew := r.which(&r.ofTimes, place)
	if n < 0 {
		return
	}
	met := at(&r.times, n)
	if !isNew {
		if *t = *met; t.IsZero() {
			r.fail("time %d was not told", n)
		}
		return
	}
	if d := r.uint(); d > 0 {
		d--
		r.last += zagzig(d)
		*t = time.Unix(0, r.last).UTC()
	} else {
		sec, nano := r.int(), r.uint()
		if nano >= 1e9 {
			r.fail("a time")
			return
		}
		*t = time.Unix(sec, int64(nano)).UTC()
	}
	*met = *t
}
