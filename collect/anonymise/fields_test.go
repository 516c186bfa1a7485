package anonymise

import (
	"reflect"
	"testing"

	"github.com/kconverge/kconverge/collect"
)

// TestEveryStringOfEveryPayloadIsDecidedAbout: a field that is added must be decided
// about in fields.go, or this fails; until then it is replaced as a whole.
func TestEveryStringOfEveryPayloadIsDecidedAbout(t *testing.T) {
	used := map[string]bool{}
	for _, p := range collect.Payloads() {
		leaves(reflect.TypeOf(p).Elem(), p.Type(), func(x reflect.Type, path string) {
			switch x.Kind() {
			case reflect.String:
				if _, ok := fields[path]; ok {
					used[path] = true
				} else if byType[x] == nil {
					t.Errorf("%s: nobody has decided what becomes of it: add it to fields.go", path)
				}
			case reflect.Bool, reflect.Int, reflect.Int32, reflect.Int64, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Float64:
			default:
				t.Errorf("%s is a %s, which rewrite does not know", path, x)
			}
		})
	}
	for path := range fields {
		if !used[path] {
			t.Errorf("%s is decided about, and is no field", path)
		}
	}
}

// TestMapsAreOfLabels: rewrite takes the keys of every map for label keys.
func TestMapsAreOfLabels(t *testing.T) {
	var find func(x reflect.Type, path string)
	find = func(x reflect.Type, path string) {
		switch x {
		case timeType, addrType, addrPortType, prefixType:
			return
		}
		switch x.Kind() {
		case reflect.Map:
			if x != reflect.TypeFor[map[string]string]() {
				t.Errorf("%s is a %s", path, x)
			}
		case reflect.Pointer, reflect.Slice:
			find(x.Elem(), path)
		case reflect.Struct:
			for i := range x.NumField() {
				if f := x.Field(i); !f.IsExported() && !f.Anonymous {
					t.Errorf("%s.%s cannot be rewritten", path, f.Name)
				} else {
					find(f.Type, path+"."+f.Name)
				}
			}
		}
	}
	for _, p := range collect.Payloads() {
		find(reflect.TypeOf(p).Elem(), p.Type())
	}
}
