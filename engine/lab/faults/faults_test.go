package faults

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/kconverge/kconverge/collect"
)

// heard collects what is told.
type heard struct{ list []string }

func (h *heard) Emit(e collect.Event) {
	f := e.Payload.(*collect.Fault)
	switch {
	case f.Refused != "":
		h.list = append(h.list, "refused "+f.Refused)
	case f.Ended:
		h.list = append(h.list, "end "+f.Text())
	default:
		h.list = append(h.list, "begin "+f.Text())
	}
}

func change(t *testing.T, f *Faults, texts ...string) {
	t.Helper()
	s, err := ParseAll(texts)
	if err == nil {
		err = f.Change(s, "test")
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestEveryFaultIsExplainedAndItsExampleIsRight(t *testing.T) {
	names := map[string]bool{}
	for _, d := range Definitions() {
		if names[d.Name] {
			t.Errorf("%s is there twice", d.Name)
		}
		names[d.Name] = true
		if d.Value == "" || d.Does == "" || d.See == "" || d.amount == nil || d.target == nil {
			t.Errorf("%s lacks something: %+v", d.Name, d)
		}
		got, err := Parse(d.Example)
		if err != nil || len(got) != 1 || got[0].Name != d.Name || got[0].Off() {
			t.Errorf("example of %s: %v, %v", d.Name, got, err)
			continue
		}
		f := New(Options{OwnPlane: true, Nodes: []string{"node-1", "node-2"}})
		if err := f.Change(got, "test"); err != nil {
			t.Errorf("example of %s: %v", d.Name, err)
		}
		if len(f.of(d.Name)) != 1 {
			t.Errorf("%s is not in force", d.Name)
		}
	}
}

func TestWhatIsWrongIsNamedWithAWayOut(t *testing.T) {
	for text, want := range map[string]string{
		"sync-dealy=3s":                "did you mean sync-delay?",
		"nonsense=1":                   "kconverge lab faults lists them",
		"sync-delay":                   "for instance sync-delay=5s@node-2",
		"sync-delay=fast":              "write 500ms or 2s, or off",
		"sync-delay=3s@":               "nothing stands behind the @",
		"sync-fail=120%":               "a percentage such as 30%",
		"api-error=404":                "write 410, 429, 500, 502, 503 or 504",
		"api-delay=1s@verb=updaet":     "there are create, delete",
		"api-delay=1s@who=me":          "write verb=, resource=, name= or client=",
		"api-delay=1s@client=nobody":   "there are reconciler",
		"workers=1@node-1":             "it cannot be limited",
		"workers=0x":                   "is no number from 1 to 100",
		"watch-hang=on@kubectl+node-1": "set the fault twice",
	} {
		if _, err := Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q in it", text, err, want)
		}
	}
	f := New(Options{Nodes: []string{"node-1", "node-2"}})
	for text, want := range map[string]string{"sync-fail=on@node-7": "there are node-1 to node-2", "workers=1": "start the lab without --control-plane"} {
		s, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Change(append(s, Setting{Name: "sync-delay", Amount: "1s"}), "test"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q in it", text, err, want)
		}
		if len(f.List()) != 0 {
			t.Error("half of a wrong change is in force")
		}
	}
}

func TestBeginningAndEndAreTold(t *testing.T) {
	f, h := New(Options{OwnPlane: true}), &heard{}
	change(t, f, "sync-delay=5s@node-2")
	f.Begin(h)
	change(t, f, "sync-delay=3s@node-1;5s@node-2")
	change(t, f, "sync-delay=7s@node-1")
	change(t, f, "sync-delay=off@node-2", "workers=1")
	change(t, f, "sync-delay=off")
	f.End()
	want := `begin sync-delay 5s node-2
begin sync-delay 3s node-1
end sync-delay 3s node-1
begin sync-delay 7s node-1
end sync-delay 5s node-2
begin workers 1
end sync-delay 7s node-1
end workers 1`
	if got := strings.Join(h.list, "\n"); got != want {
		t.Errorf("told:\n%s\nwant:\n%s", got, want)
	}
}

func TestTheConfigMapHoldsWhatIsSet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var want []Setting
		for _, d := range rapid.SliceOfDistinct(rapid.SampledFrom(Definitions()), func(d Definition) string { return d.Name }).Draw(t, "faults") {
			s, err := Parse(d.Example)
			if err != nil {
				t.Fatal(err)
			}
			want = append(want, s...)
			if d.Name == "sync-delay" {
				want = append(want, Setting{Name: d.Name, Amount: "1s", Target: "node-1"})
			}
		}
		got, err := FromData(Data(want))
		if err != nil {
			t.Fatal(err)
		}
		f, g := New(Options{OwnPlane: true}), New(Options{OwnPlane: true})
		f.replace(want, just(""))
		g.replace(got, just(""))
		a, b := f.List(), g.List()
		if len(a) != len(want) || len(b) != len(a) {
			t.Fatalf("%v became %v", a, b)
		}
		for i := range a {
			if a[i].Setting != b[i].Setting {
				t.Errorf("%v became %v", a[i], b[i])
			}
		}
	})
}

func TestASlowSyncEndsWithItsFault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := New(Options{})
		before := f.BeforeSync("node-1")
		began := time.Now()
		took := func() time.Duration {
			began = time.Now()
			if err := before(context.Background(), false); err != nil {
				t.Error(err)
			}
			return time.Since(began)
		}
		if d := took(); d != 0 {
			t.Errorf("without a fault a sync waits %v", d)
		}
		change(t, f, "sync-delay=5s@node-1")
		if d := took(); d != 5*time.Second {
			t.Errorf("a sync waits %v, want 5s", d)
		}
		if err := f.BeforeSync("node-2")(context.Background(), false); err != nil || time.Since(began) != 5*time.Second {
			t.Errorf("another node's sync waits too (%v)", err)
		}
		go func() {
			time.Sleep(2 * time.Second)
			change(t, f, "sync-delay=off")
		}()
		if d := took(); d != 2*time.Second {
			t.Errorf("a sync waits %v, want the 2s until the fault was cleared", d)
		}
	})
}

func TestSharesAreSpreadEvenly(t *testing.T) {
	f := New(Options{})
	change(t, f, "sync-fail=30%")
	failed := 0
	for range 100 {
		if err := f.BeforeSync("node-1")(context.Background(), false); errors.Is(err, ErrInjected) {
			failed++
		}
	}
	if failed != 30 {
		t.Errorf("%d of 100 syncs failed, want 30", failed)
	}
}

func TestWhatIsOfANodeStopsWhileItIsDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := New(Options{})
		ctx, cancel := context.WithCancel(context.Background())
		runs, lives := 0, 0
		done := make(chan error)
		go func() {
			done <- f.WhileAlive(ctx, "node-1", func(ctx context.Context) error {
				runs, lives = runs+1, lives+1
				<-ctx.Done()
				lives--
				return nil
			})
		}()
		see := func(what string, r, l int) {
			t.Helper()
			synctest.Wait()
			if runs != r || lives != l {
				t.Errorf("%s: started %d times, %d live; want %d and %d", what, runs, lives, r, l)
			}
		}
		see("at first", 1, 1)
		change(t, f, "node-death=on@node-2")
		see("another node dead", 1, 1)
		change(t, f, "node-death=on@node-1")
		see("dead", 1, 0)
		change(t, f, "node-death=off")
		see("back", 2, 1)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		see("at the end", 2, 0)
		failing := errors.New("cannot go on")
		if err := f.WhileAlive(t.Context(), "node-1", func(context.Context) error { return failing }); !errors.Is(err, failing) {
			t.Errorf("an end by itself is %v", err)
		}
	})
}

func TestPodsAreMeantByWhatMadeThem(t *testing.T) {
	for _, c := range []struct {
		target, namespace, pod string
		want                   bool
	}{
		{"web", "default", "web-5d9-abcde", true}, {"web", "default", "web", true}, {"web", "default", "webby-1", false},
		{"shop/web", "default", "web-1", false}, {"shop/web", "shop", "web-1", true}, {"api+web", "x", "web-0", true},
	} {
		f := New(Options{})
		change(t, f, "stop-early=on@"+c.target)
		_, own := f.Stop(c.namespace, c.pod, time.Second, time.Second)
		if got := own == 0; got != c.want {
			t.Errorf("%s means %s/%s: %v", c.target, c.namespace, c.pod, got)
		}
	}
}

func TestWhatIsWrongInTheConfigMapIsToldAndLeftOut(t *testing.T) {
	f, h := New(Options{OwnPlane: true, Nodes: []string{"node-1"}}), &heard{}
	f.Begin(h)
	cm := newConfigMap(nil)
	cm.ResourceVersion = "7"
	cm.Data = map[string]string{"sync-delay": "1s@node-1", "nonsense": "1", "sync-fail": "on@node-9"}
	if err := f.CheckConfigMap(cm); err == nil || !strings.Contains(err.Error(), "nonsense") || !strings.Contains(err.Error(), "node-9") {
		t.Errorf("checked: %v", err)
	}
	f.take(cm)
	if list := f.List(); len(list) != 1 || list[0].String() != "sync-delay=1s@node-1" || list[0].By != byConfigMap {
		t.Errorf("in force: %v", list)
	}
	if len(h.list) != 2 || !strings.HasPrefix(h.list[1], "refused ") || strings.Contains(h.list[1], "\n") {
		t.Errorf("told: %q", h.list)
	}
	old := newConfigMap(nil)
	old.ResourceVersion = "6"
	f.take(old)
	if len(f.List()) != 1 {
		t.Error("an older ConfigMap took the place of a newer one")
	}
	other := newConfigMap(nil)
	other.Name, other.Data = "other", cm.Data
	if err := f.CheckConfigMap(other); err != nil {
		t.Errorf("another ConfigMap: %v", err)
	}
}
