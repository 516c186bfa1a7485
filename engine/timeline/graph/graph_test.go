package graph

import (
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

type shape interface{ sides() int }

type square struct{ side float64 }

func (*square) sides() int { return 4 }

type dot struct{ x, y int32 }

func (dot) sides() int { return 0 }

type node struct {
	name  string
	next  *node
	all   []*node
	by    map[string]*node
	marks map[*node]struct{}
	at    time.Time
	addr  netip.AddrPort
	shape shape
	bits  []uint64
	raw   []byte
	pair  [2]int8
	ok    bool
	on    map[netip.Addr]uint16
	cache func() `graph:"-"`
}

var types = Types{"square": reflect.TypeFor[*square](), "dot": reflect.TypeFor[dot]()}

func again(t *testing.T, in *node) *node {
	t.Helper()
	b, err := Write(nil, in, types)
	if err != nil {
		t.Fatal(err)
	}
	var out node
	if err := Read(b, &out, types); err != nil {
		t.Fatal(err)
	}
	return &out
}

func TestAWebComesBackAsItWas(t *testing.T) {
	sq := &square{side: 1.5}
	shared := []uint64{1, 2, 1 << 63}
	a := &node{name: "a", at: time.Date(2026, 3, 1, 12, 0, 0, 7, time.UTC), addr: netip.MustParseAddrPort("[fe80::1%eth0]:80"), shape: sq, bits: shared,
		raw: []byte{0, 255}, pair: [2]int8{-1, 2}, ok: true, on: map[netip.Addr]uint16{netip.MustParseAddr("10.0.0.1"): 9}, cache: func() {}}
	b := &node{name: "b", next: a, shape: sq, bits: shared, at: time.Unix(-5, 0).UTC()}
	c := &node{name: "a", shape: dot{3, -4}, bits: []uint64{}}
	a.next = b
	a.all = []*node{a, b, c, nil}
	a.by = map[string]*node{"": c, "b": b}
	b.marks = map[*node]struct{}{a: {}, c: {}}
	b.by = map[string]*node{}
	got := again(t, a)
	marks := got.next.marks
	a.cache = nil
	b.marks, got.next.marks = nil, nil // by pointers, which DeepEqual takes as they are
	if want := a; !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	gotB := got.next
	if gotB.next != got || got.all[0] != got || got.all[1] != gotB || got.by["b"] != gotB || got.by[""] != got.all[2] {
		t.Error("pointers to one thing point to several now")
	}
	if _, ok := marks[got]; !ok || len(marks) != 2 {
		t.Errorf("keys %v", marks)
	}
	if got.shape != gotB.shape {
		t.Error("one square became two")
	}
	if &got.bits[0] != &gotB.bits[0] {
		t.Error("shared elements are copies now")
	}
	if got.all[2].bits == nil || gotB.by == nil || gotB.all != nil || got.all[2].by != nil {
		t.Error("empty and nil are not told apart")
	}
	if got.all[2].at != (time.Time{}) || !got.at.Equal(a.at) {
		t.Errorf("times %v and %v", got.all[2].at, got.at)
	}
}

// A list of a million is no deeper than one of two.
func TestLongListsTakeNoDepth(t *testing.T) {
	first := &node{}
	last := first
	for range 1_000_000 {
		last.next = &node{}
		last = last.next
	}
	n := 0
	for x := again(t, first); x != nil; x = x.next {
		n++
	}
	if n != 1_000_001 {
		t.Errorf("%d are left", n)
	}
}

func TestWhatCannotBeWrittenIsNamed(t *testing.T) {
	type strange struct{ c chan int }
	if _, err := Write(nil, &strange{}, nil); !errors.Is(err, ErrType) || !strings.Contains(err.Error(), "strange.c") {
		t.Errorf("a channel: %v", err)
	}
	if _, err := Write(nil, &node{shape: dot{}}, nil); !errors.Is(err, ErrType) || !strings.Contains(err.Error(), "graph.dot") {
		t.Errorf("a type that nobody named: %v", err)
	}
}

func TestLayoutsThatDifferAreToldApart(t *testing.T) {
	type one struct{ a, b int }
	type renamed struct{ a, c int }
	type retyped struct{ a, b int8 }
	type deep struct{ p *one }
	type deeper struct{ p *retyped }
	seen := map[uint64]string{}
	for name, l := range map[string]uint64{
		"one": Layout[one](nil), "renamed": Layout[renamed](nil), "retyped": Layout[retyped](nil), "deep": Layout[deep](nil), "deeper": Layout[deeper](nil),
		"node": Layout[node](types), "node without types": Layout[node](nil),
	} {
		if other := seen[l]; other != "" {
			t.Errorf("%s and %s look alike", name, other)
		}
		seen[l] = name
	}
	if Layout[node](types) != Layout[node](types) {
		t.Error("the same layout twice is two")
	}
}

// FuzzRead: no bytes crash the reader, or make it take memory that they do not
// account for.
func FuzzRead(f *testing.F) {
	a := &node{name: "a", raw: []byte("abc"), shape: &square{2}, bits: []uint64{5}, by: map[string]*node{}}
	a.next, a.all, a.by["x"] = a, []*node{a}, a
	b, err := Write(nil, a, types)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	for i := range b {
		f.Add(append(append([]byte{}, b[:i]...), b[min(i+1, len(b)):]...))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var out node
		if err := Read(b, &out, types); err != nil && !errors.Is(err, ErrDamaged) {
			t.Errorf("%v is not said to be damage", err)
		}
	})
}

func TestRandomWebsComeBackAsTheyWere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := make([]*node, rapid.IntRange(1, 12).Draw(t, "nodes"))
		for i := range all {
			all[i] = &node{name: fmt.Sprint(i % 3)}
		}
		pick := func() *node { return all[rapid.IntRange(0, len(all)-1).Draw(t, "which")] }
		for _, n := range all {
			switch rapid.IntRange(0, 4).Draw(t, "what") {
			case 0:
				n.next = pick()
			case 1:
				n.all = []*node{pick(), pick()}
			case 2:
				n.by = map[string]*node{"x": pick(), "y": pick()}
			case 3:
				n.all = pick().all
			case 4:
				n.shape = dot{x: int32(len(all))}
			}
		}
		root := &node{all: all}
		b, err := Write(nil, root, types)
		if err != nil {
			t.Fatal(err)
		}
		var out node
		if err := Read(b, &out, types); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(&out, root) {
			t.Fatalf("got %+v, want %+v", &out, root)
		}
		again, err := Write(nil, &out, types)
		if err != nil || len(again) != len(b) {
			t.Fatalf("written again it has %d bytes instead of %d: %v", len(again), len(b), err)
		}
	})
}
