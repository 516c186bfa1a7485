package recording

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestADeltaMakesWhatItIsOf: of bytes of which some are moved, added or gone, and of
// any others.
func TestADeltaMakesWhatItIsOf(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		piece := func(what string) []byte { return rapid.SliceOfN(rapid.Byte(), 0, 200).Draw(t, what) }
		var base, b []byte
		pieces := rapid.SliceOfN(rapid.Just(0), 1, 8).Draw(t, "pieces")
		for range pieces {
			p := piece("base")
			base = append(base, p...)
			switch rapid.IntRange(0, 4).Draw(t, "does") {
			case 0: // gone
			case 1:
				b = append(append(b, piece("added")...), p...)
			case 2:
				b = append(p[:len(p):len(p)], b...)
			default:
				b = append(b, p...)
			}
		}
		delta := appendDelta(nil, base, b)
		got, err := applyDelta(make([]byte, 100), base, delta)
		if err != nil || !bytes.Equal(got, b) {
			t.Fatalf("%x of %x by %x: %x, %v", b, base, delta, got, err)
		}
	})
}

func TestADeltaIsAsLongAsWhatChanged(t *testing.T) {
	base := make([]byte, 0, 100_000)
	for i := range 100_000 {
		base = append(base, byte(i*i>>7))
	}
	b := append(append(bytes.Clone(base[5:50_000]), "something new"...), base[50_100:]...)
	if n := len(appendDelta(nil, base, b)); n > 80 {
		t.Errorf("13 bytes were added and two stretches taken away: %d bytes", n)
	}
}

// ballast is a counter that knows much beside.
type ballast struct {
	counter
	rest []byte
}

func (b *ballast) Checkpoint(out []byte) ([]byte, error) {
	return append(fmt.Appendf(out, "%d ", b.n), b.rest...), nil
}
func (b *ballast) CheckpointAgain(out []byte) ([]byte, error) { return b.Checkpoint(out) }

// TestACheckpointIsToldByTheOneBefore: and when that is damaged, the latest that is not
// takes its place.
func TestACheckpointIsToldByTheOneBefore(t *testing.T) {
	rest := make([]byte, 4_000)
	rnd := rand.New(rand.NewPCG(1, 2))
	for i := range rest {
		rest[i] = byte(rnd.Uint32())
	}
	path, _ := session(t, 3_000, Options{CheckpointEvery: 100, Model: func() Model { return &ballast{rest: rest} }})
	f := opened(t, path)
	deltas := 0
	for i, c := range f.checkpoints {
		if c.Delta {
			deltas++
		}
		n := 0
		if state := f.state(i); !bytes.HasSuffix(state, rest) {
			t.Fatalf("checkpoint %d is %.20q", i, state)
		} else if fmt.Sscan(string(state), &n); n != int(f.Frames[c.Frame-1].First)+f.Frames[c.Frame-1].Events-1 {
			t.Errorf("checkpoint %d is of %d events", i, n)
		}
	}
	if whole := len(f.checkpoints) - deltas; deltas < 5*whole || whole < 2 {
		t.Fatalf("%d deltas and %d whole ones", deltas, whole)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	second := f.checkpoints[2]
	b[second.Offset+second.Size/2] ^= 0xff
	if err := os.WriteFile(path+"-damaged", b, 0o600); err != nil {
		t.Fatal(err)
	}
	g := opened(t, path+"-damaged")
	for i, c := range g.checkpoints {
		state, frame := g.Checkpoint(c.At)
		want := i
		for want >= 2 && chained(g, want, 2) {
			want--
		}
		if frame != g.checkpoints[want].Frame || !bytes.Equal(state, g.state(want)) {
			t.Errorf("for checkpoint %d that of frame %d is given, want %d", i, frame, g.checkpoints[want].Frame)
		}
	}
	// An index that tells of a wrong one before.
	g.checkpoints = slices.Delete(g.checkpoints, 3, 4)
	if state := g.state(3); state != nil {
		t.Errorf("by another than it was told by a checkpoint is %.20q", state)
	}
}

// chained tells that checkpoint i is told by checkpoint by.
func chained(f *File, i, by int) bool {
	for ; i > by; i-- {
		if !f.checkpoints[i].Delta {
			return false
		}
	}
	return i == by
}

// FuzzApplyDelta: no bytes crash it.
func FuzzApplyDelta(f *testing.F) {
	base := []byte("what stood there before, and goes on for a while")
	f.Add(base, appendDelta(nil, base, []byte("what stood there before, and then went on for a while")))
	f.Add([]byte(nil), []byte{1})
	f.Fuzz(func(t *testing.T, base, delta []byte) {
		if out, err := applyDelta(nil, base, delta); err == nil && len(out) > maxFrame {
			t.Errorf("%d bytes", len(out))
		}
	})
}
