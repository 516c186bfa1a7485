package kube

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kconverge/kconverge/collect"
)

func TestListThenWatch(t *testing.T) {
	for _, streamed := range []bool{true, false} {
		t.Run(fmt.Sprintf("streamed=%v", streamed), func(t *testing.T) {
			s := newTestServer(t)
			s.streamed = streamed
			s.put("a", "1")
			s.put("b", "1")
			_, l := watchPods(t, s.config(), func(o *Options) { o.UserAgent = "kconverge/test" })
			synced := l.await("synced", 0, isState(collect.SourceSynced))
			if got := l.snapshot()[synced].Payload.(*collect.SourceState).Count; got != 2 {
				t.Errorf("count = %d, want 2", got)
			}
			v := l.await("vouch of the list", synced, isVouch("list"))
			ev := l.snapshot()
			if u := ev[v].Payload.(*collect.Vouch).Until; u.After(ev[synced].At) {
				t.Errorf("vouches until %v, after it was synced at %v", u, ev[synced].At)
			}
			for _, n := range []string{"a", "b"} {
				if i := l.await("listed", 0, isOp(collect.OpListed, n)); i > synced {
					t.Errorf("%s listed after synced", n)
				}
			}
			s.put("c", "1")
			s.put("a", "2")
			s.remove("b")
			l.await("added", synced, isOp(collect.OpAdded, "c"))
			i := l.await("modified", synced, isOp(collect.OpModified, "a"))
			if p := l.snapshot()[i].Payload.(*collect.Pod); p.Labels["v"] != "2" {
				t.Errorf("payload = %+v", p)
			}
			i = l.await("deleted", synced, isOp(collect.OpDeleted, "b"))
			e := l.snapshot()[i]
			if e.ResourceVersion != uint64(s.rv) || e.UID == "" || e.Payload.(*collect.Pod).Labels["v"] != "1" || !e.NotBefore.IsZero() {
				t.Errorf("deletion = %+v", e)
			}
			for _, r := range s.requests {
				if !strings.HasSuffix(r, "kconverge/test") {
					t.Errorf("user agent of %q", r)
				}
			}
		})
	}
}

func TestServerThatIgnoresStreamedListsIsListedPlainly(t *testing.T) {
	s := newTestServer(t)
	s.ignores = true
	s.put("a", "1")
	_, l := watchPods(t, s.config(), func(o *Options) { o.timing.silence = 50 * time.Millisecond })
	synced := l.await("synced", 0, isState(collect.SourceSynced))
	l.await("a", 0, isOp(collect.OpListed, "a"))
	s.put("b", "1")
	l.await("b", synced, isOp(collect.OpAdded, "b"))
}

func TestBookmarkVouches(t *testing.T) {
	s := newTestServer(t)
	_, l := watchPods(t, s.config(), nil)
	l.await("synced", 0, isState(collect.SourceSynced))
	s.with(func() { s.bookmark++ })
	l.await("vouch", 0, isVouch("bookmark"))
}

func TestBrokenStreamContinuesWithoutLoss(t *testing.T) {
	s := newTestServer(t)
	s.put("a", "1")
	_, l := watchPods(t, s.config(), nil)
	synced := l.await("synced", 0, isState(collect.SourceSynced))
	s.put("first", "1") // a reflector does not continue a watch that brought nothing
	l.await("first", synced, isOp(collect.OpAdded, "first"))
	s.with(func() { s.refuse = true })
	s.breakStreams()
	broken := l.await("broken", synced, isState(collect.SourceBroken))
	s.put("a", "2")
	s.put("late", "1")
	before := l.snapshot()[broken].At
	// Long enough down to count as an interruption.
	for time.Since(before) < 2*shortPause {
		<-time.After(shortPause)
	}
	s.with(func() { s.refuse = false })
	again := l.await("synced again", broken, isState(collect.SourceSynced))
	gap := l.await("gap", broken, isGap)
	i := l.await("a", broken, isOp(collect.OpModified, "a"))
	j := l.await("late", broken, isOp(collect.OpAdded, "late"))
	ev := l.snapshot()
	g := ev[gap].Payload.(*collect.Gap)
	if g.From.After(ev[broken].At) || g.To.Before(ev[broken].At) || gap < i || gap < j || gap > again {
		t.Errorf("gap %+v at %d; broken at %v, late events at %d and %d, synced at %d", g, gap, ev[broken].At, i, j, again)
	}
	for _, e := range []collect.Event{ev[i], ev[j]} {
		if e.NotBefore.IsZero() || e.NotBefore.After(ev[broken].At) {
			t.Errorf("late event without its earliest time: %+v", e)
		}
	}
	l.await("check after it", again, isVouch("check"))
	s.put("on-time", "1")
	k := l.await("on-time", again, isOp(collect.OpAdded, "on-time"))
	if e := l.snapshot()[k]; !e.NotBefore.IsZero() {
		t.Errorf("event on time has NotBefore: %+v", e)
	}
}

func TestContinuedWatchOfAQuietResourceIsConfirmedByACheck(t *testing.T) {
	s := newTestServer(t)
	_, l := watchPods(t, s.config(), nil)
	synced := l.await("synced", 0, isState(collect.SourceSynced))
	s.put("a", "1")
	l.await("a", synced, isOp(collect.OpAdded, "a"))
	s.with(func() { s.refuse = true })
	s.breakStreams()
	broken := l.await("broken", synced, isState(collect.SourceBroken))
	s.with(func() { s.rv++; s.refuse = false }) // another resource changed meanwhile
	again := l.await("synced again", broken, isState(collect.SourceSynced))
	gap := l.await("gap", broken, isGap)
	vouch := l.await("check", again, isVouch("check"))
	if gap > again || vouch < again {
		t.Errorf("gap at %d, synced at %d, check at %d", gap, again, vouch)
	}
	never(t, l, "vouch while broken", broken, func(e collect.Event) bool {
		v, ok := e.Payload.(*collect.Vouch)
		return ok && v.Until.Before(l.snapshot()[broken].At)
	})
}

func TestRelistAfterGone(t *testing.T) {
	for _, streamed := range []bool{true, false} {
		t.Run(fmt.Sprintf("streamed=%v", streamed), func(t *testing.T) {
			s := newTestServer(t)
			s.streamed = streamed
			s.put("same", "1")
			s.put("changes", "1")
			s.put("vanishes", "1")
			s.put("recreated", "1")
			_, l := watchPods(t, s.config(), nil)
			synced := l.await("synced", 0, isState(collect.SourceSynced))
			s.with(func() {
				s.hang = true
				s.putLocked("changes", "2")
				s.removeLocked("vanishes")
				s.removeLocked("recreated")
				s.putLocked("recreated", "2")
				s.putLocked("new", "1")
				s.horizon = s.rv
				s.hang = true
			})
			s.with(func() { s.refuse = true })
			s.breakStreams()
			broken := l.await("broken", synced, isState(collect.SourceBroken))
			s.with(func() { s.refuse, s.hang = false, false })
			again := l.await("synced again", broken, isState(collect.SourceSynced))
			ev := l.snapshot()[synced+1 : again+1]
			var got []string
			for _, e := range ev {
				if e.Op == collect.OpNone {
					continue
				}
				got = append(got, string(e.Op)+" "+e.Object.Name)
				if e.NotBefore.IsZero() {
					t.Errorf("%s %s has no NotBefore", e.Op, e.Object.Name)
				}
			}
			want := []string{"gone recreated", "gone vanishes", "modified changes", "added recreated", "added new"}
			if strings.Join(got, ", ") != strings.Join(want, ", ") {
				t.Errorf("got %v, want %v\n%s", got, want, l.dump())
			}
			l.await("gap", synced, isGap)
			l.await("vouch", again, isVouch("list"))
		})
	}
}

func TestServerThatWasSetUpAnewIsListedAnew(t *testing.T) {
	s := newTestServer(t)
	l := newLog(t)
	src := watchPodsInto(t, l, s.config(), nil)
	synced := l.await("synced", 0, isState(collect.SourceSynced))
	s.put("a", "1")
	l.await("a", synced, isOp(collect.OpAdded, "a"))
	s.with(func() {
		s.rv, s.pods, s.history = 10, map[string]*corev1.Pod{}, nil
		s.putLocked("b", "1")
	})
	s.breakStreams()
	broken := l.await("broken", synced, isState(collect.SourceBroken))
	again := l.await("synced again", broken, isState(collect.SourceSynced))
	l.await("a is gone", broken, isOp(collect.OpGone, "a"))
	l.await("b is there", broken, isOp(collect.OpAdded, "b"))
	s.with(func() { s.hang = true })
	s.put("c", "1")
	src.Vouch()
	l.await("a hung watch is still found", again, isState(collect.SourceBroken))
	l.await("c", again, isOp(collect.OpAdded, "c"))
}

func TestCheckVouchesWhenNothingIsMissing(t *testing.T) {
	s := newTestServer(t)
	src, l := watchPods(t, s.config(), nil)
	synced := l.await("synced", 0, isState(collect.SourceSynced))
	s.put("a", "1")
	l.await("a", synced, isOp(collect.OpAdded, "a"))
	asked := time.Now()
	src.Vouch()
	i := l.await("check", synced, isVouch("check"))
	if u := l.snapshot()[i].Payload.(*collect.Vouch).Until; u.Before(asked) {
		t.Errorf("vouches until %v, asked at %v", u, asked)
	}
	never(t, l, "broken", synced, isState(collect.SourceBroken))
}

func TestCheckFindsAHungWatch(t *testing.T) {
	for _, what := range []string{"addition", "change", "deletion"} {
		t.Run(what, func(t *testing.T) {
			s := newTestServer(t)
			s.put("a", "1")
			src, l := watchPods(t, s.config(), nil)
			synced := l.await("synced", 0, isState(collect.SourceSynced))
			s.with(func() { s.hang = true })
			want := isOp(collect.OpModified, "a")
			switch what {
			case "addition":
				s.put("b", "1")
				want = isOp(collect.OpAdded, "b")
			case "change":
				s.put("a", "2")
			case "deletion":
				s.remove("a")
				want = isOp(collect.OpGone, "a")
			}
			src.Vouch()
			broken := l.await("broken", synced, isState(collect.SourceBroken))
			if d := l.snapshot()[broken].Payload.(*collect.SourceState).Detail; !strings.Contains(d, "hangs") {
				t.Errorf("detail = %q", d)
			}
			never(t, l, "vouch of a hung watch", synced, isVouch("check"))
			l.await("gap", broken, isGap)
			i := l.await("what was missing", broken, want)
			if e := l.snapshot()[i]; e.NotBefore.IsZero() {
				t.Errorf("no NotBefore: %+v", e)
			}
			l.await("synced", broken, isState(collect.SourceSynced))
		})
	}
}

func TestAWatchThatIsSlowButDeliversDoesNotHang(t *testing.T) {
	s := newTestServer(t)
	s.put("a", "1")
	// Long enough that a busy machine does not hold up one delivery for as long.
	const grace = 2 * time.Second
	src, l := watchPods(t, s.config(), func(o *Options) { o.timing.grace = grace })
	synced := l.await("synced", 0, isState(collect.SourceSynced))
	// All together take several times the grace.
	s.with(func() { s.pace = grace / 8 })
	for i := range 16 {
		s.put("a", strconv.Itoa(i+2))
	}
	src.Vouch()
	l.await("vouch", synced, isVouch("check"))
	never(t, l, "broken watch", synced, isState(collect.SourceBroken))
	never(t, l, "gap", synced, isGap)
}

func TestVouchEveryChecksWithoutBeingAsked(t *testing.T) {
	s := newTestServer(t)
	_, l := watchPods(t, s.config(), func(o *Options) { o.VouchEvery = 20 * time.Millisecond })
	i := l.await("check", 0, isVouch("check"))
	l.await("another", i+1, isVouch("check"))
}

func TestForbiddenSaysWhatToAskFor(t *testing.T) {
	for _, verb := range []string{"list", "watch"} {
		t.Run(verb, func(t *testing.T) {
			s := newTestServer(t)
			s.forbid["watch"] = true
			s.forbid["list"] = verb == "list"
			_, l := watchPods(t, s.config(), func(o *Options) { o.Namespaces = []string{"default"} })
			i := l.await("forbidden", 0, isState(collect.SourceForbidden))
			d := l.snapshot()[i].Payload.(*collect.SourceState).Detail
			for _, want := range []string{verb + " pods", `namespace "default"`, "kubectl create role", "--verb=get,list,watch", "-n default"} {
				if !strings.Contains(d, want) {
					t.Errorf("detail %q lacks %q", d, want)
				}
			}
			if strings.Contains(d, "\x1b") {
				t.Errorf("control characters of the server in %q", d)
			}
			never(t, l, "synced", 0, isState(collect.SourceSynced))
			s.with(func() { s.forbid = map[string]bool{} })
			l.await("synced once allowed", i, isState(collect.SourceSynced))
		})
	}
}

func TestOtherResourcesGoOnWhenOneIsMissing(t *testing.T) {
	s := newTestServer(t) // serves pods only
	tm := quickTiming
	src, err := New(Options{Config: s.config(), Resources: []collect.SourceID{collect.SourceDeployments, collect.SourcePods}, timing: &tm})
	if err != nil {
		t.Fatal(err)
	}
	l := newLog(t)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- src.Run(ctx, l) }()
	l.await("pods synced", 0, func(e collect.Event) bool {
		return e.Source == collect.SourcePods && isState(collect.SourceSynced)(e)
	})
	i := l.await("deployments broken", 0, func(e collect.Event) bool {
		return e.Source == collect.SourceDeployments && isState(collect.SourceBroken)(e)
	})
	if d := l.snapshot()[i].Payload.(*collect.SourceState).Detail; !strings.Contains(d, "does not serve deployments.apps") {
		t.Errorf("detail = %q", d)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestUnreachableAtStartIsSaidAtOnce(t *testing.T) {
	s := newTestServer(t)
	cfg := s.config()
	s.http.Close()
	_, l := watchPods(t, cfg, nil)
	i := l.await("broken", 0, isState(collect.SourceBroken))
	if d := l.snapshot()[i].Payload.(*collect.SourceState).Detail; !strings.Contains(d, "connection refused at "+cfg.Host) {
		t.Errorf("detail = %q", d)
	}
}

func TestSeveralNamespacesAreOneSource(t *testing.T) {
	s := newTestServer(t)
	_, l := watchPods(t, s.config(), func(o *Options) { o.Namespaces = []string{"one", "two", "one"} })
	i := l.await("synced", 0, isState(collect.SourceSynced))
	l.await("vouch", i, isVouch("list"))
	n := 0
	for _, e := range l.snapshot() {
		if isState(collect.SourceSynced)(e) {
			n++
		}
	}
	if n != 1 {
		t.Errorf("%d synced states, want 1", n)
	}
	if n := s.openStreams(); n != 2 {
		t.Errorf("%d watches, want one for each namespace", n)
	}
}

func TestNothingIsLostInManyWrites(t *testing.T) {
	s := newTestServer(t)
	src, l := watchPods(t, s.config(), nil)
	l.await("synced", 0, isState(collect.SourceSynced))
	rnd := rand.New(rand.NewPCG(1, 2))
	for i := range 2000 {
		name := fmt.Sprintf("pod-%d", rnd.IntN(50))
		s.with(func() {
			if _, ok := s.pods[name]; ok && rnd.IntN(3) == 0 {
				s.removeLocked(name)
			} else {
				s.putLocked(name, fmt.Sprint(i))
			}
		})
		switch i {
		case 500, 900:
			s.breakStreams()
		case 1300:
			s.with(func() { s.horizon = s.rv })
			s.breakStreams()
		}
	}
	asked := time.Now()
	src.Vouch()
	l.await("confirmation", 0, func(e collect.Event) bool {
		v, ok := e.Payload.(*collect.Vouch)
		return ok && !v.Until.Before(asked)
	})
	if !sameContent(l, s) {
		t.Errorf("the folded events are not what the server has")
	}
}

func TestReach(t *testing.T) {
	s := newTestServer(t)
	v, err := Reach(t.Context(), s.config())
	if err != nil || v != "v1.37.2" {
		t.Errorf("Reach = %q, %v", v, err)
	}
	cfg := s.config()
	s.http.Close()
	_, err = Reach(t.Context(), cfg)
	var u *UnreachableError
	if !errors.As(err, &u) {
		t.Fatalf("Reach of a closed server: %v", err)
	}
	u.Context = "kind-dev"
	for _, want := range []string{cfg.Host, `"kind-dev"`, "connection refused", "kconverge lab"} {
		if !strings.Contains(u.Error(), want) {
			t.Errorf("%q lacks %q", u.Error(), want)
		}
	}
}
