package graph

import (
	"encoding"
	"reflect"
	"sync"
	"time"
)

// plan says how a type is written and read. It is made once for each type, and the
// bytes are then walked by addresses instead of by reflection: a model has hundreds of
// thousands of values, and whoever moves in a recording waits for them.
type plan struct {
	op     op
	typ    reflect.Type
	size   uintptr
	number int // of the plan
	// elem is of what a pointer, slice, array or map holds, key of a map's keys.
	elem, key *plan
	n         int // elements of an array
	// fields are those of a struct that are written, those of structs in it among
	// them.
	fields []part
	// self are the parts of a value that stands in no other, each those of what a
	// pointer, slice, array or map holds, keys those of a map's keys: the fields of a
	// struct, or one.
	self, each, keys []part
}

// part is a value within another.
type part struct {
	*plan
	op     op // the plan's
	offset uintptr
	place  int    // its number
	name   string // of a field, for errors, with its struct's
}

// op is what a plan does.
type op uint8

const (
	opBad op = iota // cannot be written
	opTime
	opMarshal
	opBool
	opInt8
	opInt16
	opInt32
	opInt64
	opUint8
	opUint16
	opUint32
	opUint64
	opFloat32
	opFloat64
	opString
	opArray
	opStruct
	opPointer
	opMap
	opSlice
	opInterface
)

var kinds = map[reflect.Kind]op{
	reflect.Bool: opBool, reflect.Int8: opInt8, reflect.Int16: opInt16, reflect.Int32: opInt32, reflect.Int64: opInt64,
	reflect.Uint8: opUint8, reflect.Uint16: opUint16, reflect.Uint32: opUint32, reflect.Uint64: opUint64,
	reflect.Float32: opFloat32, reflect.Float64: opFloat64, reflect.String: opString, reflect.Array: opArray,
	reflect.Struct: opStruct, reflect.Pointer: opPointer, reflect.Map: opMap, reflect.Slice: opSlice, reflect.Interface: opInterface,
}

// plans are those of all types that were met, by type. planning is held while some are
// made, so that none is seen before it is whole.
var (
	plans    sync.Map
	planning sync.Mutex
	// places counts the parts that there are: what stands in one is often near what
	// stood there before.
	places int
	// planned counts the plans.
	planned int
)

func newPlace() int { places++; return places - 1 }

func planOf(t reflect.Type) *plan {
	if p, ok := plans.Load(t); ok {
		return p.(*plan)
	}
	planning.Lock()
	defer planning.Unlock()
	made := map[reflect.Type]*plan{}
	p := makePlan(t, made)
	for _, p := range made {
		p.self, p.each, p.keys = partsOf(p), partsOf(p.elem), partsOf(p.key)
	}
	for t, p := range made {
		plans.Store(t, p)
	}
	return p
}

func partsOf(p *plan) []part {
	switch {
	case p == nil:
		return nil
	case p.op == opStruct:
		return p.fields
	}
	return []part{{plan: p, op: p.op, place: newPlace()}}
}

func makePlan(t reflect.Type, made map[reflect.Type]*plan) *plan {
	if p, ok := plans.Load(t); ok {
		return p.(*plan)
	}
	if p := made[t]; p != nil {
		return p
	}
	p := &plan{typ: t, size: t.Size(), op: kinds[t.Kind()], number: planned}
	planned++
	made[t] = p
	switch {
	case t == timeType:
		p.op = opTime
		return p
	case marshals(t):
		p.op = opMarshal
		return p
	case t.Kind() == reflect.Int:
		p.op = map[uintptr]op{4: opInt32, 8: opInt64}[p.size]
	case t.Kind() == reflect.Uint:
		p.op = map[uintptr]op{4: opUint32, 8: opUint64}[p.size]
	}
	switch p.op {
	case opPointer, opSlice:
		p.elem = makePlan(t.Elem(), made)
	case opArray:
		p.elem, p.n = makePlan(t.Elem(), made), t.Len()
	case opMap:
		p.key, p.elem = makePlan(t.Key(), made), makePlan(t.Elem(), made)
	case opStruct:
		for i := range t.NumField() {
			f := t.Field(i)
			if f.Tag.Get(Tag) == "-" {
				continue
			}
			in := makePlan(f.Type, made)
			if in.op != opStruct {
				p.fields = append(p.fields, part{in, in.op, f.Offset, newPlace(), t.String() + "." + f.Name})
				continue
			}
			for _, x := range in.fields {
				p.fields = append(p.fields, part{x.plan, x.op, f.Offset + x.offset, newPlace(), x.name})
			}
		}
	}
	return p
}

var timeType = reflect.TypeFor[time.Time]()

// marshals reports that the type writes itself: what is behind its fields is the
// business of its package (netip.Addr has a pointer that means something to its own
// process alone). A time is written here, without what allocates.
func marshals(t reflect.Type) bool {
	return t != timeType && t.Kind() == reflect.Struct &&
		t.Implements(reflect.TypeFor[encoding.BinaryAppender]()) && reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.BinaryUnmarshaler]())
}
