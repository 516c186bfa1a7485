package collect

import (
	"encoding/json"
	"testing"
	"time"
)

// TestALineIsWhatEncodingJSONWrites: whatever the strings and times, what is written
// by hand is what the struct comes to.
func TestALineIsWhatEncodingJSONWrites(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 4, 13, 71_000_120, time.FixedZone("x", 3600))
	events := []Event{
		{At: at, Payload: &Advance{}},
		{Seq: 1, At: at.Truncate(time.Second), NotBefore: at, Source: "kube/\"pods\"", Op: OpModified, Object: ObjectKey{Kind: "Pod", Name: "a"}, Payload: &Pod{Phase: "a<b>&\u2028é"}},
		{Seq: 1 << 63, Source: "<&>", Object: ObjectKey{Kind: "K\n", Namespace: "\xff", Name: "\\"}, UID: "\x7fü", ResourceVersion: 1<<64 - 1, Payload: &Gap{From: at, Why: "x"}},
	}
	for _, p := range Payloads() {
		events = append(events, Event{Seq: 7, At: at, Source: SourcePods, UID: "u", Payload: p})
	}
	for _, e := range events {
		data, err := json.Marshal(e.Payload)
		if err != nil {
			t.Fatal(err)
		}
		if string(data) == "{}" {
			data = nil
		}
		w := wire{Seq: e.Seq, At: e.At.UTC(), Source: e.Source, Type: e.Payload.Type(), Op: e.Op, UID: e.UID, RV: e.ResourceVersion, Data: data}
		if !e.NotBefore.IsZero() {
			w.NotBefore = e.NotBefore.UTC()
		}
		if e.Object != (ObjectKey{}) {
			w.Object = &e.Object
		}
		want, err := json.Marshal(w)
		if err != nil {
			t.Fatal(err)
		}
		got, err := AppendMarshal([]byte("before"), e)
		if err != nil || string(got) != "before"+string(want) {
			t.Errorf("%v\n got %s\nwant before%s", err, got, want)
		}
	}
	for _, e := range []Event{{At: time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC), Payload: &Advance{}}, {At: at}} {
		if b, err := AppendMarshal([]byte("before"), e); err == nil || string(b) != "before" {
			t.Errorf("of what cannot be written: %q, %v", b, err)
		}
	}
}
