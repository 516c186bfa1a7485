package collect

import (
	"encoding"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unsafe"
)

// read takes one value into what p points to; false where it cannot.
type read func(d *decoder, p unsafe.Pointer) bool

// reads are how each payload is read, by its type. They are made once, from the types
// themselves, so that a field that is added needs nothing here.
var (
	reads      = map[reflect.Type]read{}
	readObject read
)

func init() {
	for _, mk := range payloadTypes {
		t := reflect.TypeOf(mk()).Elem()
		reads[t] = readerOf(t)
	}
	readObject = readerOf(reflect.TypeFor[ObjectKey]())
}

func (d *decoder) payload(p Payload) bool {
	v := reflect.ValueOf(p)
	return reads[v.Type().Elem()](d, v.UnsafePointer())
}

func (d *decoder) object(k *ObjectKey) bool { return readObject(d, unsafe.Pointer(k)) }

var (
	readTime        = func(d *decoder, p unsafe.Pointer) bool { return d.moment((*time.Time)(p)) }
	textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
)

func unknown(*decoder, unsafe.Pointer) bool { return false }

// readerOf makes what reads a type; of one that it does not know, nothing is read.
func readerOf(t reflect.Type) read {
	if t == reflect.TypeFor[time.Time]() {
		return readTime
	}
	if reflect.PointerTo(t).Implements(textUnmarshaler) {
		return func(d *decoder, p unsafe.Pointer) bool {
			b, ok := d.raw()
			return ok && reflect.NewAt(t, p).Interface().(encoding.TextUnmarshaler).UnmarshalText(b) == nil
		}
	}
	switch t.Kind() {
	case reflect.String:
		return func(d *decoder, p unsafe.Pointer) bool {
			s, ok := d.text()
			*(*string)(p) = s
			return ok
		}
	case reflect.Bool:
		return func(d *decoder, p unsafe.Pointer) bool {
			v, ok := d.truth()
			*(*bool)(p) = v
			return ok
		}
	case reflect.Int, reflect.Int32, reflect.Int64:
		return func(d *decoder, p unsafe.Pointer) bool {
			n, ok := d.integer(t.Bits())
			if !ok {
				return false
			}
			reflect.NewAt(t, p).Elem().SetInt(n)
			return true
		}
	case reflect.Uint32, reflect.Uint64:
		return func(d *decoder, p unsafe.Pointer) bool {
			n, ok := d.natural()
			if !ok || n>>(t.Bits()-1)>>1 != 0 {
				return false
			}
			reflect.NewAt(t, p).Elem().SetUint(n)
			return true
		}
	case reflect.Float64:
		return readFloat
	case reflect.Pointer:
		return pointerReader(t)
	case reflect.Slice:
		return sliceReader(t)
	case reflect.Map:
		return mapReader(t)
	case reflect.Struct:
		return structReader(t)
	}
	return unknown
}

// readFloat takes a number with a fraction or without; exponents are encoding/json's.
func readFloat(d *decoder, p unsafe.Pointer) bool {
	from := d.i
	d.next('-')
	whole := d.i
	for d.i < len(d.b) && d.b[d.i]-'0' <= 9 {
		d.i++
	}
	if n := d.i - whole; n == 0 || n > 1 && d.b[whole] == '0' {
		return false
	}
	if d.next('.') {
		fraction := d.i
		for d.i < len(d.b) && d.b[d.i]-'0' <= 9 {
			d.i++
		}
		if d.i == fraction {
			return false
		}
	}
	if d.i < len(d.b) && d.b[d.i]|0x20 == 'e' {
		return false
	}
	f, err := strconv.ParseFloat(string(d.b[from:d.i]), 64)
	*(*float64)(p) = f
	return err == nil
}

func pointerReader(t reflect.Type) read {
	elem := readerOf(t.Elem())
	return func(d *decoder, p unsafe.Pointer) bool {
		x := reflect.New(t.Elem()).UnsafePointer()
		*(*unsafe.Pointer)(p) = x
		return elem(d, x)
	}
}

func sliceReader(t reflect.Type) read {
	if t.Elem().Kind() == reflect.Uint8 {
		return unknown // base64
	}
	elem := readerOf(t.Elem())
	return func(d *decoder, p unsafe.Pointer) bool {
		if !d.next('[') {
			return false
		}
		s := reflect.NewAt(t, p).Elem()
		s.Set(reflect.MakeSlice(t, 0, 0))
		for n := 0; !d.next(']'); n++ {
			if n > 0 && !d.next(',') {
				return false
			}
			if n == s.Cap() {
				s.Grow(max(n, 1))
			}
			s.SetLen(n + 1)
			if !elem(d, s.Index(n).Addr().UnsafePointer()) {
				return false
			}
		}
		return true
	}
}

func mapReader(t reflect.Type) read {
	if t != reflect.TypeFor[map[string]string]() {
		return unknown
	}
	return func(d *decoder, p unsafe.Pointer) bool {
		if !d.next('{') {
			return false
		}
		m := map[string]string{}
		for first := true; !d.next('}'); first = false {
			if !first && !d.next(',') {
				return false
			}
			k, ok := d.text()
			if !ok || !d.next(':') {
				return false
			}
			v, ok := d.text()
			if !ok {
				return false
			}
			m[k] = v
		}
		*(*map[string]string)(p) = m
		return true
	}
}

// field is one of a struct, or of a struct that is embedded in it.
type field struct {
	name   string
	offset uintptr
	read   read
}

func structReader(t reflect.Type) read {
	fields, ok := fieldsOf(t, 0)
	if !ok || len(fields) > 64 {
		return unknown
	}
	return func(d *decoder, p unsafe.Pointer) bool {
		if !d.next('{') {
			return false
		}
		var seen uint64
		at := 0 // fields come in their order
		for first := true; !d.next('}'); first = false {
			if !first && !d.next(',') {
				return false
			}
			name, ok := d.raw()
			if !ok || !d.next(':') {
				return false
			}
			n := 0
			for n < len(fields) && fields[at].name != string(name) {
				n++
				if at++; at == len(fields) {
					at = 0
				}
			}
			if n == len(fields) || seen>>at&1 == 1 {
				return false
			}
			seen |= 1 << at
			if !fields[at].read(d, unsafe.Add(p, fields[at].offset)) {
				return false
			}
		}
		return true
	}
}

// fieldsOf are the fields as encoding/json names them; false for what is not as
// payloads are.
func fieldsOf(t reflect.Type, offset uintptr) (out []field, ok bool) {
	names := map[string]bool{}
	for i := range t.NumField() {
		f := t.Field(i)
		tag, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && tag == "" && f.Type.Kind() == reflect.Struct {
			inner, ok := fieldsOf(f.Type, offset+f.Offset)
			if !ok {
				return nil, false
			}
			out = append(out, inner...)
			continue
		}
		if !f.IsExported() || tag == "" || tag == "-" || strings.Contains(options, "string") {
			return nil, false
		}
		out = append(out, field{tag, offset + f.Offset, readerOf(f.Type)})
	}
	for _, f := range out {
		if names[f.name] {
			return nil, false
		}
		names[f.name] = true
	}
	return out, true
}
