package recording

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	seekable "github.com/SaveTheRbtz/zstd-seekable-format-go/pkg"
	"github.com/klauspost/compress/zstd"

	"github.com/kconverge/kconverge/collect"
)

// counter is a model that knows how many events it took.
type counter struct{ n int }

func (c *counter) Apply(collect.Event) { c.n++ }
func (c *counter) Checkpoint(b []byte) ([]byte, error) {
	return append(b, fmt.Sprint(c.n)...), nil
}

func (c *counter) CheckpointAgain(b []byte) ([]byte, error) { return c.Checkpoint(b) }

// session writes a recording of n events and gives its path and lines.
func session(t testing.TB, n int, o Options) (string, []byte) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a.kconverge")
	w, err := Create(path, o)
	if err != nil {
		t.Fatal(err)
	}
	var lines bytes.Buffer
	plain := collect.NewWriter(&lines)
	for i, e := range events(n) {
		if s, ok := e.Payload.(*collect.Session); ok {
			s.Format = Format
		}
		if i > 0 {
			e.Payload = &collect.Action{Text: strings.Repeat(fmt.Sprint(i, " "), 40)}
		}
		if err := errors.Join(w.Write(e), plain.Write(e)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return path, lines.Bytes()
}

func opened(t testing.TB, path string) *File {
	t.Helper()
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func all(t testing.TB, r *Reader) (out []collect.Event) {
	t.Helper()
	for {
		e, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, e)
	}
}

func TestAClosedRecordingIsSeekableZstandardOfLines(t *testing.T) {
	path, lines := session(t, 3*checkpointEvery+17, Options{Model: func() Model { return &counter{} }})
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	// Any decoder, as zstdcat is one.
	d, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if got, err := d.DecodeAll(b, nil); err != nil || !bytes.Equal(got, lines) {
		t.Errorf("%v: decompressed it is %d bytes, want %d", err, len(got), len(lines))
	}
	// Any reader of the seekable format.
	r, err := seekable.NewReader(bytes.NewReader(b), d)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	part := make([]byte, 1000)
	if _, err := r.ReadAt(part, int64(len(lines)/2)); err != nil || !bytes.Equal(part, lines[len(lines)/2:][:1000]) {
		t.Errorf("%v: the middle is %q", err, part)
	}

	f := opened(t, path)
	if !f.Indexed || f.Cut || f.Events != 3*checkpointEvery+18 || !f.From.Equal(start) || !f.To.Equal(start.Add((3*checkpointEvery+17)*time.Second)) {
		t.Errorf("%+v", f)
	}
	// From each checkpoint on the rest follows.
	for _, at := range []time.Duration{0, checkpointEvery - 2, checkpointEvery + 5, 2*checkpointEvery + 5, 4 * checkpointEvery} {
		state, frame := f.Checkpoint(start.Add(at * time.Second))
		n := 0
		fmt.Sscan(string(state), &n)
		if want := min(int(at)/checkpointEvery, 3) * checkpointEvery; want > 0 && (n < want || n > int(at)+1) || want == 0 && state != nil {
			t.Errorf("the checkpoint for %d s is of %d events", at, n)
		}
		if rest := all(t, f.Read(frame)); len(rest) != int(f.Events)-n || rest[0].Seq != uint64(n+1) {
			t.Errorf("after the checkpoint of %d events come %d, from number %d on", n, len(rest), rest[0].Seq)
		}
	}
}

func TestAKilledProgramsFileOpensWhereverItEnds(t *testing.T) {
	path, _ := session(t, 300, Options{Plain: true})
	// Several frames, as they are after some seconds.
	var b []byte
	enc, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	whole := all(t, opened(t, path).Read(0))
	var ends []int // of frames, in bytes
	var held []int // events up to there
	for from := 0; from < len(whole); from += 60 {
		var lines bytes.Buffer
		w := collect.NewWriter(&lines)
		for _, e := range whole[from:min(from+60, len(whole))] {
			if err := w.Write(e); err != nil {
				t.Fatal(err)
			}
		}
		b = enc.EncodeAll(lines.Bytes(), b)
		ends, held = append(ends, len(b)), append(held, min(from+60, len(whole)))
	}
	for cut := ends[0]; cut <= len(b); cut++ {
		if err := os.WriteFile(path, b[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		want := 0
		for i, end := range ends {
			if end <= cut {
				want = held[i]
			}
		}
		f, err := Open(path)
		if err != nil {
			t.Fatalf("cut at byte %d: %v", cut, err)
		}
		if got := all(t, f.Read(0)); len(got) != want || !f.Cut {
			t.Fatalf("cut at byte %d: %d events, want %d", cut, len(got), want)
		}
		f.Close()
	}
}

func TestWhatCameInTheLastSecondIsHandedOnWithoutFurtherEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "a.kconverge")
		w, err := Create(path, Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events(3) {
			if err := w.Write(e); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(frameEvery) // in the bubble
		synctest.Wait()
		if got := all(t, opened(t, path).Read(0)); len(got) != 4 {
			t.Errorf("a second later %d events are in the file, want 4", len(got))
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestDamageCostsItsOwnFrame: whatever byte is wrong, the other frames are there, and
// where some is missing a gap of every source says so.
func TestDamageCostsItsOwnFrame(t *testing.T) {
	for _, kind := range []Options{{}, {Plain: true}} {
		path, _ := session(t, 14_000, kind)
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		f := opened(t, path)
		frames, events := len(f.Frames), len(all(t, f.Read(0)))
		if frames < 4 {
			t.Fatalf("%d frames only", frames)
		}
		rnd := rand.New(rand.NewPCG(1, 2))
		for range 12 {
			broken := bytes.Clone(b)
			first := f.Frames[1].Offset // where nothing else tells of the session
			if !kind.Plain {
				first = f.Frames[0].Offset
			}
			at := first + rnd.Int64N(f.Frames[frames-1].Offset-first)
			broken[at] ^= byte(1 + rnd.IntN(255))
			if err := os.WriteFile(path, broken, 0o600); err != nil {
				t.Fatal(err)
			}
			g, err := Open(path)
			if err != nil && at < int64(len(zstdMagic)) && !kind.Plain {
				continue // it does not begin as a recording does
			}
			if err != nil {
				t.Fatalf("byte %d: %v", at, err)
			}
			r := g.Read(0)
			got := all(t, r)
			gaps := 0
			for _, e := range got {
				if _, ok := e.Payload.(*collect.Gap); ok {
					gaps++
				}
			}
			lost := events - (len(got) - gaps)
			if lost > 2*events/frames+1 || lost > 0 && (gaps == 0 || r.Damaged == 0) {
				t.Errorf("byte %d: %d of %d events are lost, %d gaps told, %d parts damaged", at, lost, events, gaps, r.Damaged)
			}
			g.Close()
		}
	}
}

func TestADamagedBeginningCostsItsOwnFrame(t *testing.T) {
	path, _ := session(t, 14_000, Options{})
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f := opened(t, path)
	whole := all(t, f.Read(0))
	b[f.Frames[0].Size/2] ^= 0xff
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	g := opened(t, path)
	if g.Session.Kind != "lab" || !g.Session.Started.Equal(start) {
		t.Errorf("the session is %+v", g.Session)
	}
	got := all(t, g.Read(0))
	if _, ok := got[0].Payload.(*collect.Session); !ok {
		t.Errorf("it begins with %+v", got[0])
	}
	if gap, ok := got[1].Payload.(*collect.Gap); !ok || !gap.To.IsZero() || got[1].Source != SourceRecording {
		t.Errorf("then comes %+v", got[1])
	}
	if want := whole[f.Frames[0].Events:]; len(got)-2 != len(want) || got[2].Seq != want[0].Seq {
		t.Errorf("%d events are left from number %d on, want %d from %d", len(got)-2, got[2].Seq, len(want), want[0].Seq)
	}
}

func TestAFullDiskStopsTheRecordingAndLeavesItWhole(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.kconverge")
	w, err := Create(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	limit(t, 600<<10)
	var failed error
	for i, e := range events(100_000) {
		if i > 0 {
			noise := make([]byte, 200)
			for j := range noise {
				noise[j] = byte('a' + rnd.IntN(26))
			}
			e.Payload = &collect.Action{Text: string(noise)}
		}
		if failed = w.Write(e); failed != nil {
			break
		}
	}
	if failed == nil || !strings.Contains(failed.Error(), path) || !strings.Contains(failed.Error(), "stopped") {
		t.Fatalf("with no room left: %v", failed)
	}
	if err := w.Close(); err == nil {
		t.Error("Close says that all is well")
	}
	f := opened(t, path)
	if got := all(t, f.Read(0)); len(got) == 0 || f.Lost != 0 {
		t.Errorf("%d events are left, %d bytes lost", len(got), f.Lost)
	}
}

// FuzzOpen: no file crashes the reader, hangs it, or takes memory without bound.
func FuzzOpen(f *testing.F) {
	rest := bytes.Repeat([]byte("what is known, "), 40) // so that checkpoints are told by those before
	path, lines := session(f, 30, Options{CheckpointEvery: 3, Model: func() Model { return &ballast{rest: rest} }})
	b, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add(lines)
	f.Add(b[:len(b)/2])
	f.Add(bytes.Repeat(b, 2))
	f.Add(append([]byte{}, zstdMagic...))
	for i := range 20 { // damage in every part: frames, checkpoints, index, seek table
		bad := bytes.Clone(b)
		bad[i*len(bad)/20] ^= 0xff
		f.Add(bad)
	}
	// A little that unpacks to much: lines without an end, an index of nothing.
	enc, err := zstd.NewWriter(nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(append(bytes.Clone(b), enc.EncodeAll(bytes.Repeat([]byte("x"), 20<<20), nil)...))
	bomb := enc.EncodeAll([]byte(`{"frames":[`+strings.Repeat("{},", 1<<20)+`{}]}`), nil)
	bomb = append(binary.LittleEndian.AppendUint32(bomb, uint32(len(bomb))), indexTail...)
	f.Add(append(append(bytes.Clone(b), skippable(indexFrame, bomb)...), 0, 0, 0, 0, 0, 0xb1, 0xea, 0x92, 0x8f))
	// A frame that says that it is larger than any, and one of no end.
	f.Add(append(append([]byte{}, zstdMagic...), 0xe0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 0xfd, 0xff, 0xff))
	f.Add(append(bytes.Clone(lines), bytes.Repeat([]byte(`{"at":`), 100_000)...))
	f.Fuzz(func(t *testing.T, b []byte) {
		path := filepath.Join(t.TempDir(), "f")
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := Open(path)
		if err != nil {
			return
		}
		defer r.Close()
		r.Checkpoint(start)
		r.CheckpointOf(10)
		r.Checkpoint(start.Add(time.Hour))
		r.CheckpointSeq(start.Add(time.Hour))
		r.Intact()
		// More than there are lines cannot come: it ends.
		for in, n := r.Read(0), 0; ; n++ {
			if _, err := in.Next(); err != nil {
				break
			}
			if n > 10_000_000 {
				t.Fatal("it does not end")
			}
		}
		if again, err := r.Reindexed(Options{Model: func() Model { return &counter{} }}); err == nil {
			again.Close()
		}
	})
}

func BenchmarkWrite(b *testing.B) {
	w, err := Create(filepath.Join(b.TempDir(), "a"), Options{Plain: true})
	if err != nil {
		b.Fatal(err)
	}
	es := events(1000)
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		if err := w.Write(es[n%len(es)]); err != nil {
			b.Fatal(err)
		}
		n++
	}
	if err := w.Close(); err != nil {
		b.Fatal(err)
	}
	info, err := os.Stat(w.path)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(info.Size())/float64(n), "bytes/event")
}

func BenchmarkRead(b *testing.B) {
	path, _ := session(b, 100_000, Options{})
	f := opened(b, path)
	b.ReportAllocs()
	for b.Loop() {
		if n := len(all(b, f.Read(0))); n != 100_001 {
			b.Fatal(n)
		}
	}
	b.ReportMetric(float64(b.N)*100_001/b.Elapsed().Seconds(), "events/s")
}
