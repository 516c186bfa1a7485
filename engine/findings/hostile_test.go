package findings

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/engine/timeline"
	"github.com/kconverge/kconverge/engine/timeline/timelinetest"
)

// TestTextOfTheClusterIsMadePlain plays every scenario with names that a terminal would
// obey, and wants the same findings in the same order with nothing of that left; a model
// taken from a checkpoint finds the same.
func TestTextOfTheClusterIsMadePlain(t *testing.T) {
	found := 0
	for name, a := range all(t) {
		m, sc := timeline.New(timeline.Options{}), timelinetest.New()
		for _, part := range a.Files {
			if word, _, _ := strings.Cut(part.Name, " "); word != "events" {
				continue
			}
			events, err := sc.Parse(strings.ReplaceAll(string(part.Data), "web", "w\x1b[31m\x07eb\u202e$(id)"))
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			for _, e := range events {
				m.Apply(e)
			}
			list := Find(m.Snapshot(), nil)
			for _, f := range list {
				for _, text := range []string{f.Object, f.Message, f.Fix} {
					if collect.Plain(text) != text || strings.ContainsAny(text, "\x1b\x07\u202e\n") {
						t.Errorf("%s: %q", name, text)
					}
				}
				if i := strings.Index(f.Fix, "$(id)"); i >= 0 && strings.Contains(f.Fix, "kubectl") && strings.Count(f.Fix[:i], "'")%2 == 0 {
					t.Errorf("%s: a shell would run it: %s", name, f.Fix)
				}
			}
			found += len(list)
			if !slices.IsSortedFunc(list, compare) {
				t.Errorf("%s: not sorted", name)
			}
			state, err := m.Checkpoint(nil)
			if err != nil {
				t.Fatal(err)
			}
			again, err := timeline.Restore(state)
			if err != nil {
				t.Fatal(err)
			}
			if other := Find(again.Snapshot(), nil); !reflect.DeepEqual(list, other) {
				t.Errorf("%s: from a checkpoint\n%s\nelse\n%s", name, text(other, false), text(list, false))
			}
		}
	}
	if found == 0 {
		t.Error("nothing was found")
	}
}

// TestKeepChoosesServices: those that are left out are not judged, nodes and sources
// are.
func TestKeepChoosesServices(t *testing.T) {
	m, sc := timeline.New(timeline.Options{}), timelinetest.New()
	events, err := sc.Parse(`
0 list node n1 ready
0 list svc web ip=10.96.0.11 port=80:8080 selector=app:web
0 list svc api ip=10.96.0.12 port=80:8080 selector=app:api
1ms synced
2ms rules n1 baseline gen=1 web= api=
3ms proxy n1 started=-100s unhealthy
1s now`)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		m.Apply(e)
	}
	var got []string
	for _, f := range Find(m.Snapshot(), func(s *timeline.Service) bool { return s.Name == "api" }) {
		got = append(got, f.Code.ID+" "+f.Object)
	}
	if want := []string{"KC311 Node n1", "KC102 Service default/api"}; !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
}
