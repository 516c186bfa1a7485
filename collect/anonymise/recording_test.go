package anonymise_test

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/collect/anonymise"
	"github.com/kconverge/kconverge/collect/recording"
	"github.com/kconverge/kconverge/engine/timeline"
)

// secrets are events with a word in every place where names stand.
func secrets() []collect.Event {
	e := func(src collect.SourceID, kind, name string, p collect.Payload) collect.Event {
		return collect.Event{Source: src, Op: collect.OpListed, UID: mark + name, Object: collect.ObjectKey{Kind: kind, Namespace: mark + "ns", Name: mark + name}, Payload: p}
	}
	labels := map[string]string{"app": mark + "app", mark + "/team": mark + "team"}
	out := []collect.Event{
		{Source: collect.SourceClock, Payload: &collect.Session{Kind: "cluster", Name: "https://" + mark + ".example.com:6443", Namespaces: []string{mark + "ns"}, Needs: []collect.SourceID{collect.RulesSource(mark + "n")}}},
		e(collect.SourceServices, "Service", "web", &collect.Service{Labels: labels, Selector: labels}),
		e(collect.SourcePods, "Pod", "web-1", &collect.Pod{Labels: labels, Node: mark + "n"}),
	}
	for i := range 6000 {
		out = append(out, collect.Event{Source: collect.SourceUser, At: timelineStart.Add(1e6 * 10 * 1), Payload: &collect.Action{Text: "scale deploy/" + mark + string(rune('a'+i%26))}})
	}
	for i := range out {
		out[i].Seq = uint64(i + 1)
		if out[i].At.IsZero() {
			out[i].At = timelineStart
		}
	}
	return out
}

// everything is all that stands in a file: its lines, and its index and checkpoints,
// which decoders pass over.
func everything(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	d, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	out, err := d.DecodeAll(b, nil)
	if err != nil {
		t.Fatal(err)
	}
	magic := []byte{0x28, 0xb5, 0x2f, 0xfd}
	for at := 0; ; {
		i := bytes.Index(b[at:], magic)
		if i < 0 {
			break
		}
		at += i
		// What stands in a frame that is passed over has its length before it.
		if at >= 8 && b[at-7] == 0x2a && b[at-6] == 0x4d && b[at-5] == 0x18 {
			n := int(binary.LittleEndian.Uint32(b[at-4:]))
			one := b[at:min(len(b), at+n)]
			var h zstd.Header
			if h.Decode(one) != nil {
				t.Fatal("a frame of its own is none")
			}
			part, err := d.DecodeAll(one, nil)
			if err != nil { // the index has its length behind it
				if part, err = d.DecodeAll(one[:len(one)-12], nil); err != nil {
					t.Fatal(err)
				}
			}
			out = append(out, part...)
		}
		at += len(magic)
	}
	return out
}

func TestNothingIsLeftInAFile(t *testing.T) {
	o := recording.Options{Model: func() recording.Model { return timeline.New(timeline.Options{}) }}
	dir := t.TempDir()
	plain, live := filepath.Join(dir, "plain"), filepath.Join(dir, "live")
	w, err := recording.Create(plain, o)
	if err != nil {
		t.Fatal(err)
	}
	v, err := recording.Create(live, o)
	if err != nil {
		t.Fatal(err)
	}
	rewritten := anonymise.NewWriter(v)
	for _, e := range secrets() {
		if err := w.Write(e); err != nil {
			t.Fatal(err)
		}
		if err := rewritten.Write(e); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := v.Close(); err != nil {
		t.Fatal(err)
	}
	in, err := recording.Open(plain)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	copied := filepath.Join(dir, "copied")
	if _, err := anonymise.Recording(in, copied, o); err != nil {
		t.Fatal(err)
	}
	was := everything(t, plain)
	for _, where := range []string{`{"session":{`, "kconverge.recording/v1", `"src":"user"`} {
		if !bytes.Contains(was, []byte(where)) {
			t.Fatalf("no %s in what was looked through", where)
		}
	}
	if n := bytes.Count(was, []byte(mark)); n < 6000 {
		t.Fatalf("only %d were there before", n)
	}
	for _, path := range []string{live, copied} {
		got := everything(t, path)
		if i := bytes.Index(got, []byte("qzsecret")); i >= 0 {
			t.Errorf("%s: left: %q", filepath.Base(path), got[max(0, i-100):min(len(got), i+50)])
		}
		f, err := recording.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if state, _ := f.Checkpoint(f.To); f.Events != in.Events || state == nil {
			t.Errorf("%s has %d events, %d before, and a checkpoint of %d bytes", filepath.Base(path), f.Events, in.Events, len(state))
		}
		f.Close()
	}
	if _, err := anonymise.Recording(in, copied, o); err == nil {
		t.Error("a file that exists is overwritten")
	} else if _, err := os.Stat(copied); err != nil {
		t.Error("a file that existed is gone")
	}
}
