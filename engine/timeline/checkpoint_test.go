package timeline

import (
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func restored(t interface{ Fatal(...any) }, m *Model) *Model {
	b, err := m.CheckpointAgain(nil)
	if err != nil {
		t.Fatal(err)
	}
	out, err := Restore(b)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestARestoredModelGoesOnAsTheOtherDoes: wherever the checkpoint is taken, what is
// known then and after all further events is the same, and the model that it was
// taken of is none the worse.
func TestARestoredModelGoesOnAsTheOtherDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		w.breaks = true
		for range rapid.IntRange(1, 20).Draw(t, "turns") {
			w.turn()
		}
		if w.broken != "" {
			w.relist()
		}
		events := append(w.delivered(20*time.Millisecond, "late by"), advance(w.now.Add(time.Second)), advance(w.now.Add(time.Hour)))
		cut := rapid.IntRange(0, len(events)-1).Draw(t, "cut")
		again := rapid.IntRange(-1, cut).Draw(t, "another before")
		seen := rapid.Bool().Draw(t, "snapshots before")
		plain, m := New(Options{}), New(Options{})
		var copied *Model
		for i, e := range events {
			plain.Apply(e)
			m.Apply(e)
			if seen {
				m.Snapshot()
			}
			if copied != nil {
				copied.Apply(e)
			}
			if i == again {
				// The next one is told by what is known of this one.
				restored(t, m)
			}
			if i == cut {
				copied = restored(t, m)
				if got, want := dump(copied.Snapshot()), dump(plain.Snapshot()); got != want {
					t.Fatalf("restored\n%s\nwas\n%s", got, want)
				}
			}
			if i >= len(events)-2 || i == cut+1 {
				want := dump(plain.Snapshot())
				if copied != nil {
					if got := dump(copied.Snapshot()); got != want {
						t.Fatalf("restored after %d of %d events, then gone on:\n%s\nnever restored:\n%s", cut, len(events), got, want)
					}
				}
				if got := dump(m.Snapshot()); got != want {
					t.Fatalf("after a checkpoint was taken:\n%s\nwithout:\n%s", got, want)
				}
			}
		}
	})
}

func TestOnlyItsOwnCheckpointsAreRestored(t *testing.T) {
	m, _ := benchCluster(2, 2)
	b, err := m.Checkpoint(nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		b    []byte
		want error
	}{
		"nothing":           {nil, ErrNoCheckpoint},
		"something else":    {[]byte("{\"seq\":1}\n and so on, for a while"), ErrNoCheckpoint},
		"one cut off":       {b[:len(b)-1], ErrNoCheckpoint},
		"one with a tail":   {append(b[:len(b):len(b)], 0), ErrNoCheckpoint},
		"another version's": {append(append([]byte(checkpointMagic), "12345678"...), b[len(checkpointMagic)+8:]...), ErrOtherModel},
	} {
		if _, err := Restore(c.b); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

// BenchmarkCheckpoint and BenchmarkRestore measure a cluster of 1,000 Services with
// ten pods each on ten nodes.
func BenchmarkCheckpoint(b *testing.B) {
	m, _ := benchCluster(1000, 10)
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		var err error
		if buf, err = m.Checkpoint(buf[:0]); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(len(buf)), "bytes")
}

func BenchmarkRestore(b *testing.B) {
	m, _ := benchCluster(1000, 10)
	buf, err := m.Checkpoint(nil)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Restore(buf); err != nil {
			b.Fatal(err)
		}
	}
}
