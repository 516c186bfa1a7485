package graph

import (
	"cmp"
	"encoding"
	"iter"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"time"
	"unsafe"
)

// entries are those of a map, laid out behind each other, and the order in which they
// are written.
type entries struct {
	keys, elems reflect.Value // slices
	order       []int
}

// ordered gives the entries of a map in an order that follows from what the keys are,
// so that a map of which little has changed is written nearly as before. Pointers are
// told apart by the texts of what they point to; where these are the same the order is
// any. What it gives is good until it is called again for the same type.
func (w *writer) ordered(p *plan, m reflect.Value) iter.Seq2[unsafe.Pointer, unsafe.Pointer] {
	n := m.Len()
	e := w.rooms[p]
	if e == nil {
		e = &entries{}
		w.rooms[p] = e
	}
	if len(e.order) < n {
		size := max(n, 2*len(e.order))
		e.keys, e.elems = reflect.MakeSlice(reflect.SliceOf(p.key.typ), size, size), reflect.MakeSlice(reflect.SliceOf(p.elem.typ), size, size)
		e.order = make([]int, size)
	}
	order := e.order[:n]
	i := 0
	for it := m.MapRange(); it.Next(); i++ {
		e.keys.Index(i).SetIterKey(it)
		e.elems.Index(i).SetIterValue(it)
		order[i] = i
	}
	var keys, elems unsafe.Pointer
	if n > 0 {
		keys, elems = e.keys.UnsafePointer(), e.elems.UnsafePointer()
	}
	key := func(i int) unsafe.Pointer { return unsafe.Add(keys, uintptr(i)*p.key.size) }
	slices.SortFunc(order, func(a, b int) int { return compare(p.key, key(a), key(b)) })
	return func(yield func(key, elem unsafe.Pointer) bool) {
		for _, i := range order {
			if !yield(key(i), unsafe.Add(elems, uintptr(i)*p.elem.size)) {
				return
			}
		}
	}
}

// compare orders two values of a type; 0 says that it knows no order.
func compare(p *plan, a, b unsafe.Pointer) int {
	switch p.op {
	case opTime:
		return (*time.Time)(a).Compare(*(*time.Time)(b))
	case opMarshal:
		return compareMarshalled(p, a, b)
	case opBool, opUint8:
		return cmp.Compare(*(*uint8)(a), *(*uint8)(b))
	case opInt8:
		return cmp.Compare(*(*int8)(a), *(*int8)(b))
	case opInt16:
		return cmp.Compare(*(*int16)(a), *(*int16)(b))
	case opInt32:
		return cmp.Compare(*(*int32)(a), *(*int32)(b))
	case opInt64:
		return cmp.Compare(*(*int64)(a), *(*int64)(b))
	case opUint16:
		return cmp.Compare(*(*uint16)(a), *(*uint16)(b))
	case opUint32:
		return cmp.Compare(*(*uint32)(a), *(*uint32)(b))
	case opUint64:
		return cmp.Compare(*(*uint64)(a), *(*uint64)(b))
	case opString:
		return strings.Compare(*(*string)(a), *(*string)(b))
	case opArray:
		for i := range p.n {
			at := uintptr(i) * p.elem.size
			if c := compare(p.elem, unsafe.Add(a, at), unsafe.Add(b, at)); c != 0 {
				return c
			}
		}
	case opStruct:
		return compareFields(p, a, b, func(op) bool { return true })
	case opPointer:
		x, y := *(*unsafe.Pointer)(a), *(*unsafe.Pointer)(b)
		if x != nil && y != nil && p.elem.op == opStruct {
			return compareFields(p.elem, x, y, func(o op) bool { return o == opString })
		}
	}
	return 0
}

func compareFields(p *plan, a, b unsafe.Pointer, of func(op) bool) int {
	for i := range p.fields {
		f := &p.fields[i]
		if !of(f.op) {
			continue
		}
		if c := compare(f.plan, unsafe.Add(a, f.offset), unsafe.Add(b, f.offset)); c != 0 {
			return c
		}
	}
	return 0
}

func compareMarshalled(p *plan, a, b unsafe.Pointer) int {
	if p.typ == addrType {
		return (*netip.Addr)(a).Compare(*(*netip.Addr)(b))
	}
	text := func(at unsafe.Pointer) string {
		b, _ := reflect.NewAt(p.typ, at).Interface().(encoding.BinaryAppender).AppendBinary(nil)
		return string(b)
	}
	return strings.Compare(text(a), text(b))
}

var addrType = reflect.TypeFor[netip.Addr]()
