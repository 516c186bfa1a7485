package graph

import (
	"encoding"
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
	"time"
)

// Read fills *root, which must be zero, with what Write wrote of one of the same
// Layout. Any bytes are safe: what Write cannot have written is an error that wraps
// ErrDamaged, and takes no more memory than some multiple of the bytes.
func Read[T any](b []byte, root *T, types Types) error {
	r := &reader{b: b, size: len(b), types: types, plans: plans{}, texts: []string{""}}
	r.refs = append(r.refs, reflect.Value{}, reflect.ValueOf(root))
	if err := r.value(reflect.ValueOf(root).Elem()); err != nil {
		return err
	}
	for len(r.later) > 0 {
		v := r.later[len(r.later)-1]
		r.later = r.later[:len(r.later)-1]
		if err := r.content(v); err != nil {
			return err
		}
	}
	if len(r.b) > 0 {
		return fmt.Errorf("%w: %d bytes too many", ErrDamaged, len(r.b))
	}
	return nil
}

type reader struct {
	b     []byte
	types Types
	plans plans
	texts []string
	refs  []reflect.Value
	later []reflect.Value
	// owed counts the elements of all slices; each takes a byte at least, so
	// they are fewer than size.
	owed, size int
}

func (r *reader) uint() (uint64, error) {
	n, size := binary.Uvarint(r.b)
	if size <= 0 {
		return 0, fmt.Errorf("%w: a number is cut off", ErrDamaged)
	}
	r.b = r.b[size:]
	return n, nil
}

func (r *reader) int() (int64, error) {
	n, size := binary.Varint(r.b)
	if size <= 0 {
		return 0, fmt.Errorf("%w: a number is cut off", ErrDamaged)
	}
	r.b = r.b[size:]
	return n, nil
}

// length reads how many things follow, each of which takes at least one byte.
func (r *reader) length() (int, error) {
	n, err := r.uint()
	if err == nil && n > uint64(len(r.b)) {
		err = fmt.Errorf("%w: %d things announced, %d bytes left", ErrDamaged, n, len(r.b))
	}
	return int(n), err
}

func (r *reader) take(n int) []byte {
	b := r.b[:n:n]
	r.b = r.b[n:]
	return b
}

func (r *reader) text() (string, error) {
	n, err := r.uint()
	if err != nil {
		return "", err
	}
	if n > 0 {
		if n >= uint64(len(r.texts)) {
			return "", fmt.Errorf("%w: text %d of %d", ErrDamaged, n, len(r.texts)-1)
		}
		return r.texts[n], nil
	}
	size, err := r.length()
	if err != nil {
		return "", err
	}
	s := string(r.take(size))
	r.texts = append(r.texts, s)
	return s, nil
}

// share reads the number of something shared: it sets v to it, or has it made when
// it is new.
func (r *reader) share(v reflect.Value, fresh func() (reflect.Value, error)) error {
	n, err := r.uint()
	switch {
	case err != nil || n == 0:
		return err
	case n < uint64(len(r.refs)):
		if r.refs[n].Type() != v.Type() {
			return fmt.Errorf("%w: a %s where a %s belongs", ErrDamaged, r.refs[n].Type(), v.Type())
		}
	case n == uint64(len(r.refs)):
		made, err := fresh()
		if err != nil {
			return err
		}
		r.refs, r.later = append(r.refs, made), append(r.later, made)
	default:
		return fmt.Errorf("%w: reference %d of %d", ErrDamaged, n, len(r.refs)-1)
	}
	v.Set(r.refs[n])
	return nil
}

func (r *reader) value(v reflect.Value) error {
	t := v.Type()
	p := r.plans.of(t)
	switch {
	case t == timeType:
		return r.time(v)
	case p.marshals:
		n, err := r.length()
		if err != nil {
			return err
		}
		if err := v.Addr().Interface().(encoding.BinaryUnmarshaler).UnmarshalBinary(r.take(n)); err != nil {
			return fmt.Errorf("%w: %s: %w", ErrDamaged, t, err)
		}
		return nil
	}
	switch t.Kind() {
	case reflect.Bool:
		n, err := r.uint()
		v.SetBool(n != 0)
		return err
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		n, err := r.int()
		v.SetInt(n)
		return err
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		n, err := r.uint()
		v.SetUint(n)
		return err
	case reflect.Float32, reflect.Float64:
		n, err := r.uint()
		v.SetFloat(math.Float64frombits(n))
		return err
	case reflect.String:
		s, err := r.text()
		v.SetString(s)
		return err
	case reflect.Array:
		return r.each(v)
	case reflect.Struct:
		for _, i := range p.fields {
			if err := r.value(field(v, i)); err != nil {
				return err
			}
		}
		return nil
	case reflect.Pointer:
		return r.share(v, func() (reflect.Value, error) {
			p := reflect.New(t.Elem())
			if p.Type() != t { // a named pointer type
				p = p.Convert(t)
			}
			return p, nil
		})
	case reflect.Map:
		return r.share(v, func() (reflect.Value, error) { return reflect.MakeMap(t), nil })
	case reflect.Slice:
		return r.share(v, func() (reflect.Value, error) {
			n, err := r.length()
			if r.owed += n; err == nil && r.owed > r.size {
				err = fmt.Errorf("%w: more announced than there is", ErrDamaged)
			}
			if err != nil {
				return reflect.Value{}, err
			}
			return reflect.MakeSlice(t, n, n), nil
		})
	case reflect.Interface:
		return r.boxed(v)
	}
	return unsupported(t, "")
}

// boxed reads what an interface holds.
func (r *reader) boxed(v reflect.Value) error {
	name, err := r.text()
	if err != nil || name == "" {
		return err
	}
	t, ok := r.types[name]
	if !ok || !t.Implements(v.Type()) {
		return fmt.Errorf("%w: a %q inside a %s", ErrDamaged, name, v.Type())
	}
	x := reflect.New(t).Elem()
	if err := r.value(x); err != nil {
		return err
	}
	v.Set(x)
	return nil
}

// content reads what a pointer, map or slice refers to.
func (r *reader) content(v reflect.Value) error {
	switch v.Kind() {
	case reflect.Pointer:
		return r.value(v.Elem())
	case reflect.Slice:
		return r.each(v)
	}
	n, err := r.length()
	if err != nil {
		return err
	}
	t := v.Type()
	for range n {
		key, elem := reflect.New(t.Key()).Elem(), reflect.New(t.Elem()).Elem()
		if err := r.value(key); err != nil {
			return err
		}
		if err := r.value(elem); err != nil {
			return err
		}
		v.SetMapIndex(key, elem)
	}
	return nil
}

func (r *reader) each(v reflect.Value) error {
	if v.Type().Elem().Kind() == reflect.Uint8 && v.Kind() == reflect.Slice {
		if v.Len() > len(r.b) {
			return fmt.Errorf("%w: bytes are cut off", ErrDamaged)
		}
		copy(v.Bytes(), r.take(v.Len()))
		return nil
	}
	for i := range v.Len() {
		if err := r.value(v.Index(i)); err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) time(v reflect.Value) error {
	nano, err := r.uint()
	if err != nil || nano == 0 {
		return err
	}
	if nano > 1e9 {
		return fmt.Errorf("%w: a time", ErrDamaged)
	}
	sec, err := r.int()
	v.Set(reflect.ValueOf(time.Unix(sec, int64(nano)-1).UTC()))
	return err
}
