package recording

import (
	"testing"
	"time"

	"github.com/kconverge/kconverge/collect"
)

func TestAFaultInForceStandsSinceItBegan(t *testing.T) {
	s := NewStanding()
	at := func(after time.Duration, p collect.Payload) {
		s.Apply(collect.Event{Seq: 1, At: start.Add(after), Source: collect.SourceUser, Payload: p})
	}
	at(0, &collect.Session{Kind: "lab", Name: "lab", Started: start})
	at(1*time.Second, &collect.Fault{Name: "workers", Amount: "1"})
	at(2*time.Second, &collect.Fault{Name: "sync-delay", Amount: "5s", Target: "node-2"})
	at(3*time.Second, &collect.Fault{Name: "workers", Amount: "1", Ended: true})
	at(4*time.Second, &collect.Fault{Refused: "no"})
	var got []collect.Fault
	for _, e := range s.Baseline() {
		if f, ok := e.Payload.(*collect.Fault); ok {
			got = append(got, *f)
		}
	}
	if len(got) != 1 || got[0].Name != "sync-delay" || got[0].Ended || !got[0].Since.Equal(start.Add(2*time.Second)) {
		t.Errorf("what stands: %+v", got)
	}
}
