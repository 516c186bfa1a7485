package nodelog

import (
	"strings"
	"testing"
	"time"

	"github.com/kconverge/kconverge/collect"
)

// Somebody names the wrong file: that is said, once, also of what was in it before
// the viewer came.
func TestLinesThatAreNoAgentsAreToldOfOnce(t *testing.T) {
	at := time.Unix(1000, 0)
	var told []string
	s := newStream("node-1", collect.SinkFunc(func(e collect.Event) {
		if st, ok := e.Payload.(*collect.SourceState); ok && strings.Contains(st.Detail, "not an agent's") {
			told = append(told, string(e.Source)+" "+string(st.State)+" "+st.Detail)
		}
	}), newKnown(), nil, noClock)
	for range 5 {
		s.read([]byte("\x1b[31mELF"), at)
	}
	if len(told) > 0 {
		t.Errorf("told before the viewer came: %q", told)
	}
	s.present(at)
	if len(told) != 1 || told[0] != "rules/node-1 broken no line of the agent yet, but a line that is not an agent's: [31mELF" {
		t.Errorf("%q", told)
	}
	s.read([]byte("more"), at)
	agent := &script{node: "node-1", instance: "a"}
	for _, l := range agent.hello() {
		s.read(l, at)
	}
	for range 5 {
		s.read([]byte("again"), at)
	}
	if len(told) != 2 || !strings.HasSuffix(told[1], "again") {
		t.Errorf("%q", told)
	}
}
