package ui_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/engine/lanes/lanestest"
	"github.com/kconverge/kconverge/engine/timeline"
	"github.com/kconverge/kconverge/ui"
)

// has fails unless the screen shows every one of the texts.
func (s *screen) has(texts ...string) *screen {
	s.t.Helper()
	got := s.text()
	for _, x := range texts {
		if !strings.Contains(got, x) {
			s.t.Errorf("the screen does not show %q:\n%s", x, got)
		}
	}
	return s
}

// lacks fails when the screen shows the text.
func (s *screen) lacks(text string) *screen {
	s.t.Helper()
	if got := s.text(); strings.Contains(got, text) {
		s.t.Errorf("the screen shows %q:\n%s", text, got)
	}
	return s
}

func TestTheFirstFrameIsThereBeforeAnySnapshot(t *testing.T) {
	m, err := ui.New(options(&clock{t: lanestest.Start}))
	if err != nil {
		t.Fatal(err)
	}
	v := m.View()
	for _, x := range []string{"kconverge", "lab v1.37.2", "waiting for the first events", "help", hint[:40]} {
		if !strings.Contains(v.Content, x) {
			t.Errorf("the first frame lacks %q:\n%s", x, v.Content)
		}
	}
	if !v.AltScreen || v.MouseMode != tea.MouseModeCellMotion {
		t.Errorf("alt screen %v, mouse mode %v", v.AltScreen, v.MouseMode)
	}
}

func TestFromTheListToTheTimelineToThePathAndBack(t *testing.T) {
	s := newScreen(t, 120, 40, func(o *ui.Options) { o.Focus = "" }).show(manyServices())
	s.has("5 Services", "shop/checkout").press("j").has("› default/web").press("enter")
	s.has("[2 Timeline]", "at 12:04:19.100", "node-3").press("enter")
	s.has("[3 Path]", "change 5 of 5", "− web-7d9c4b-p4d8c").press("p", "p")
	s.has("change 3 of 5", "Without node-3").press("esc")
	s.has("[2 Timeline]").press("esc").has("[1 Services]").press("esc").has("[1 Services]")
}

func TestThePathHandsItsMomentToTheTimeline(t *testing.T) {
	s := newScreen(t, 120, 40, nil).show(lanestest.Converging()).press("3", "p", "p", "p", "p")
	s.has("+ web-7d9c4b-x7k2p", "origin 12:04:13.071").press("enter")
	s.has("[2 Timeline]", "at 12:04:13.071", "paused")
}

func TestAChangeIsComparedWithTheOthers(t *testing.T) {
	s := newScreen(t, 120, 40, nil).show(oneSlowNode()).press("3")
	s.has("against 11 other additions of web", "▲ this 3.30 s  p50 78 ms", "Slower than 11 of 11 other additions", "linear")
	s.press("j", "j", "j", "j").has("what happened in the 2.21 s of slice", "conflict with another writer", "this 2.21 s  p50 8 ms")
	s.press("e").has("the axes are logarithmic", "10 ms").press("j").has(" log").press("e").has("the axes are linear")
	s.press("p", "p").has("nothing was slow, 0.64 s is usual (n=11).").lacks("Slower than")
}

func TestTheCursorStepsThroughCellsAndShowsWhatWasTrue(t *testing.T) {
	s := newScreen(t, 120, 40, nil).show(lanestest.Converging())
	s.has("now 12:04:19", "live")
	for i := 0; i < 5; i++ {
		s.press("h")
	}
	s.has("paused", "at 12:04:18.375", "stopped 0.61 s", "+1.67 s after scale web 7→5")
	s.press("f").has("now 12:04:19", "live")
	s.press("[").has("at 12:04:16.752").press("[").has("at 12:04:13.071").press("[").has("no episode before this")
	s.press("]").has("at 12:04:16.752").press("esc").has("now 12:04:19")
}

func TestTheCursorFindsADifferenceThatIsNarrowerThanACell(t *testing.T) {
	s := newScreen(t, 120, 40, nil).show(lanestest.Converging())
	for i := 0; i < 5; i++ {
		s.press("down") // to the lane of the slices
	}
	s.has("›slices (1)")
	s.press("[", "[", "l")
	s.press("h").has("at 12:04:13.071", "− 10.244.3.5:8080")
}

func TestZoomKeepsWhatIsUnderTheCursor(t *testing.T) {
	s := newScreen(t, 120, 40, nil).show(lanestest.Converging()).press("[", "[")
	before := cursorColumn(s)
	s.has("125 ms/cell").press("+").has("100 ms/cell", "at 12:04:13.071")
	if after := cursorColumn(s); after != before {
		t.Errorf("the cursor moved from column %d to %d", before, after)
	}
	s.press("-", "-").has("250 ms/cell", "at 12:04:13.071").press("0").has("now 12:04:19")
}

func cursorColumn(s *screen) int {
	for _, l := range strings.Split(s.text(), "\n") {
		if i := strings.Index(l, "▼"); i >= 0 {
			return len([]rune(l[:i]))
		}
	}
	return -1
}

func TestFitShowsEverythingSinceTheStart(t *testing.T) {
	s := newScreen(t, 120, 40, nil).show(lanestest.Converging()).press("z").lacks("folding quiet")
	s.press("0").has("5 s/cell").press("z", "0").has("folding quiet", "≈ 3m")
}

func TestUnfoldingQuietTimeKeepsTheCursorInView(t *testing.T) {
	s := newScreen(t, 120, 40, nil).show(lanestest.Converging()).press("H", "H", "H", "H", "H", "H", "H", "H")
	if s.has("paused"); cursorColumn(s) < 0 {
		t.Fatalf("no cursor:\n%s", s.text())
	}
	if s.press("z"); cursorColumn(s) < 0 {
		t.Errorf("the cursor is out of view:\n%s", s.text())
	}
}

func TestThePanelSaysHowItsChangeStandsToTheCursor(t *testing.T) {
	s := newScreen(t, 120, 40, nil).show(lanestest.Converging()).has("─ change under cursor ─")
	s.press("[", "h", "h").has("─ last change, over for ")
	s.press("[", "[", "h", "h").has("─ change after the cursor ─")
}

func TestRetriesOfTheReconcilerAreInTheLegend(t *testing.T) {
	snap := lanestest.Converging()
	newScreen(t, 120, 40, nil).show(snap).lacks("retried")
	svc := snap.Services[0]
	svc.Marks = append(svc.Marks, timeline.Mark{At: snap.Now.Add(-time.Second), Kind: "reconcile", Step: &collect.ReconcileStep{Step: "retry"}})
	newScreen(t, 120, 40, nil).show(snap).has("! retried")
}

func TestTheOnlyServiceOpensByItself(t *testing.T) {
	none := func(o *ui.Options) { o.Focus = "" }
	newScreen(t, 120, 40, none).show(lanestest.Converging()).has("[2 Timeline]", "default/web")
	newScreen(t, 120, 40, none).show(manyServices()).has("[1 Services]")
	newScreen(t, 120, 40, none).press("4").show(lanestest.Converging()).has("[4 Nodes]")
}

func TestOnASmallScreenTheNodesStayInView(t *testing.T) {
	snap := lanestest.Converging()
	svc := snap.Services[0]
	for i := 0; i < 6; i++ {
		svc.Pods = append(svc.Pods, svc.Pods[6])
		svc.Pods[7+i].Name, svc.Pods[7+i].UID = fmt.Sprintf("web-more-%d", i), fmt.Sprint("more-", i)
	}
	newScreen(t, 80, 24, nil).show(snap).has("node-3", "reconciler", "▸ 10 pods").press("u").has("▾ 4 stea").lacks("reconciler")
}

func TestOnASmallScreenPodsGiveWayToTheNodes(t *testing.T) {
	snap := lanestest.Converging()
	svc := snap.Services[0]
	for i := 4; i <= 6; i++ {
		p := *svc.Rules.All()[2]
		p.ID.Node = fmt.Sprintf("node-%d", i)
		svc.Rules = timeline.PlanesOf(append(svc.Rules.All(), &p)...)
	}
	newScreen(t, 80, 24, nil).show(snap).has("▸ 7 pods", "5, 2 gone", "slices (1)", "node-1", "node-6", "reconciler").lacks("x7k2p │")
}

func TestThePanelMovesInStepsWhilePodsCome(t *testing.T) {
	s := newScreen(t, 120, 40, nil)
	moved, before := 0, 0
	for n := range 9 {
		snap := lanestest.Converging()
		svc := snap.Services[0]
		for i := range n {
			svc.Pods = append(svc.Pods, svc.Pods[6])
			svc.Pods[7+i].Name, svc.Pods[7+i].UID = fmt.Sprintf("web-more-%d", i), fmt.Sprint("more-", i)
		}
		at := 0
		for i, l := range strings.Split(s.show(snap).text(), "\n") {
			if strings.Contains(l, "change under cursor") {
				at = i
			}
		}
		if at != before {
			moved++
		}
		before = at
	}
	if moved > 4 {
		t.Errorf("the panel stood in %d places while 8 pods came one by one", moved)
	}
}

func TestUntilZoomedThePictureFollowsTheWidth(t *testing.T) {
	// The size of the terminal may become known after the first snapshot.
	s := newScreen(t, 80, 24, nil).show(lanestest.Converging()).has("250 ms/cell")
	s.send(tea.WindowSizeMsg{Width: 120, Height: 40}).has("125 ms/cell")
	s.press("+").has("100 ms/cell").send(tea.WindowSizeMsg{Width: 200, Height: 50}).has("100 ms/cell")
	s.send(tea.WindowSizeMsg{Width: 80, Height: 24}).has("100 ms/cell")
}

func TestLanesStayChosenWhileRowsComeAndGo(t *testing.T) {
	s := newScreen(t, 120, 40, nil).show(lanestest.Converged())
	for i := 0; i < 6; i++ {
		s.press("j")
	}
	s.has("›node-3").show(lanestest.Converging()).has("›node-3", "web-7d9c…-x7k2p")
}

func TestFilteringServices(t *testing.T) {
	s := newScreen(t, 120, 40, nil).show(manyServices()).press("1", "/")
	s.press("s", "h", "o", "p", "space", "!", "s", "e", "a").has("2 of 5 Services", "shop/cart").lacks("› default/web")
	s.press("q").has("!seaq"). // q is a letter here, and quits nothing
					press("backspace", "enter").has("2 of 5 Services").press("esc").has("5 Services")
}

func TestThePaletteFindsActionsAndServices(t *testing.T) {
	s := newScreen(t, 120, 40, nil).show(manyServices()).press("ctrl+p").has("all actions")
	s.press("c", "a", "r", "t").has("shop/cart").press("enter").has("shop/cart", "[2 Timeline]")
	s.press(":").press("n", "o", "d", "e", "s").press("enter")
	s.press(":").has("all actions").press("esc").lacks("all actions")
	s.press(":", "x", "x", "x").has("nothing is called so").press("esc")
	s.press(":").has("not here: what is shown here is only watched")
}

func TestTheKubectlLineCanAlwaysBeFound(t *testing.T) {
	s := newScreen(t, 120, 40, nil).show(lanestest.Converging()) // somebody has scaled
	s.lacks(hint).press("?").has("from another terminal:", hint, "copy the kubectl line for this lab").press("?")
	s.press("Y").has("copied: " + hint)
	s.press(":", "k", "u", "b", "e", "c", "t", "l").has("copy-kubectl-line").press("enter").has("copied: " + hint)
	s.press("6").lacks(hint)

	s = newScreen(t, 120, 40, nil).show(lanestest.Converged()) // nobody has
	s.has(hint).press("6").has(hint)

	s = newScreen(t, 120, 40, func(o *ui.Options) { o.Hint = "" }).show(lanestest.Converged())
	s.press("?").lacks("kubectl").press("?", "Y").has("! there is no kubectl line")
	s.press(":", "k", "u", "b", "e").has("not here: there is no kubectl line")
}

func TestHelpNamesTheKeysInUse(t *testing.T) {
	s := newScreen(t, 120, 40, func(o *ui.Options) { o.Keys = map[string][]string{"zoom-in": {"i"}} })
	s.show(lanestest.Converging()).press("?").has("help: Timeline", "i              less time on the screen").press("?").lacks("help: Timeline")
	s.press("i").has("100 ms/cell").press("+").has("100 ms/cell")
}

func TestKeysCannotBeBoundTwice(t *testing.T) {
	o := options(&clock{})
	o.Keys = map[string][]string{"zoom-in": {"q"}}
	if _, err := ui.New(o); err == nil || !strings.Contains(err.Error(), `"q"`) {
		t.Errorf("error %v", err)
	}
	o.Keys = map[string][]string{"fly": {"x"}}
	if _, err := ui.New(o); err == nil || !strings.Contains(err.Error(), "fly") {
		t.Errorf("error %v", err)
	}
}

func TestScalingAsksAndActs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &doer{}
		s := newScreen(t, 120, 40, func(o *ui.Options) { o.Actions = d }).show(lanestest.Converging())
		s.press("s").has("scale web", "> 5").press("7").has("> 7").press("up").has("> 8").press("down", "enter")
		s.has("scale web to 7 …")
		s.send(s.messages()...)
		s.has("scale web to 7: done")
		if got := strings.Join(d.calls, ","); got != "scale Deployment default/web 7" {
			t.Errorf("calls %q", got)
		}
		s.press("s", "esc").lacks("replicas")
		s.press("s", "backspace", "enter").has("! replicas must be a number")
	})
}

func TestScaleAndRestartTakeTheWorkloadThatCan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			kinds   []string
			scale   string // what is done or complained of
			restart string
		}{
			{[]string{"StatefulSet"}, "scale StatefulSet default/of-StatefulSet 6", "restart StatefulSet default/of-StatefulSet"},
			{[]string{"DaemonSet", "StatefulSet"}, "scale StatefulSet default/of-StatefulSet 6", "restart StatefulSet default/of-StatefulSet"},
			{[]string{"ReplicaSet"}, "scale ReplicaSet default/of-ReplicaSet 6", "! no Deployment, StatefulSet or DaemonSet stands behind default/web"},
			{[]string{"DaemonSet"}, "! no Deployment, StatefulSet or ReplicaSet stands behind default/web", "restart DaemonSet default/of-DaemonSet"},
			{[]string{"Job"}, "! no Deployment, StatefulSet or ReplicaSet stands behind default/web", "! no Deployment, StatefulSet or DaemonSet stands behind default/web"},
		} {
			snap := lanestest.Converging()
			snap.Services[0].Workloads = nil
			for _, k := range c.kinds {
				snap.Services[0].Workloads = append(snap.Services[0].Workloads, timeline.Workload{Kind: k, Name: "of-" + k, Replicas: 5})
			}
			for keys, want := range map[string]string{"s up enter": c.scale, "r enter": c.restart} {
				d := &doer{}
				s := newScreen(t, 120, 40, func(o *ui.Options) { o.Actions = d }).show(snap)
				ks := strings.Fields(keys)
				if strings.HasPrefix(want, "!") {
					s.press(ks[0]).has(want)
					continue
				}
				s.press(ks...)
				s.messages()
				if got := strings.Join(d.calls, ","); got != want {
					t.Errorf("%v, keys %s: did %q, want %q", c.kinds, keys, got, want)
				}
			}
		}
	})
}

func TestARefusedActionSaysWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &doer{fail: errRefused}
		s := newScreen(t, 120, 40, func(o *ui.Options) { o.Actions = d }).show(lanestest.Converging())
		s.press("r").has("restart web?").press("enter")
		s.send(s.messages()...).has("! restart web: the API server refused")
		d.fail = errors.New("restart default/web: it has no template")
		s.press("r", "enter").send(s.messages()...).has("! restart default/web: it has no template").lacks("restart web:")
	})
}

func TestOnlyAChosenPodIsDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &doer{}
		s := newScreen(t, 120, 40, func(o *ui.Options) { o.Actions = d }).show(lanestest.Converging())
		s.press("d").has("! choose a pod's lane")
		s.press("j", "j", "4", "d").has("! choose a pod's lane") // not one that is out of sight
		s.press("2", "d").has("! pod web-7d9c4b-x7k2p is gone").lacks("delete pod web")
		s.press("j", "j", "d").has("delete pod web-7d9c4b-9rjvn?").press("enter")
		s.send(s.messages()...)
		if got := strings.Join(d.calls, ","); got != "delete default/web-7d9c4b-9rjvn" {
			t.Errorf("calls %q", got)
		}
	})
}

func TestWithoutActionsTheReasonIsGiven(t *testing.T) {
	s := newScreen(t, 120, 40, func(o *ui.Options) { o.NoActions = "watch changes nothing" }).show(lanestest.Converging())
	for _, k := range []string{"s", "r", "d"} {
		s.press(k).has("! watch changes nothing").press("x").press("down").lacks("changes nothing")
	}
}

func TestCopyingTakesTheTableOrThePath(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScreen(t, 120, 40, nil).show(lanestest.Converging())
		s.messages()
		s.press("y").has("copied what was true at 12:04:19.100")
		said := fmt.Sprint(s.messages())
		for _, x := range []string{"default/web at 12:04:19.100", "node-3\t7\t+ 10.244.3.5:8080\tweb-7d9c4b-x7k2p\tstopped 1.34 s"} {
			if !strings.Contains(said, x) {
				t.Errorf("copied %q, which lacks %q", said, x)
			}
		}
	})
}

func TestWhenTheSourceEndsTheScreenStaysAndSaysSo(t *testing.T) {
	s := newScreen(t, 120, 40, nil).show(lanestest.Converging()).send(ui.Ended())
	s.has("source ended", "what was known at 12:04:19", "node-3").press("h").has("source ended")
}

func TestTheMouseChoosesLanesAndMoments(t *testing.T) {
	s := newScreen(t, 120, 40, nil).show(lanestest.Converging())
	s.send(tea.MouseClickMsg{X: 30, Y: 17, Button: tea.MouseLeft}).has("›node-3", "paused")
	s.send(tea.MouseWheelMsg{X: 30, Y: 17, Button: tea.MouseWheelUp}).has("100 ms/cell")
	s.send(tea.MouseClickMsg{X: 30, Y: 1, Button: tea.MouseLeft}).has("[3 Path]")
	s.press("ctrl+t").has("the mouse selects text")
	if v := s.m.View(); v.MouseMode != tea.MouseModeNone {
		t.Errorf("mouse mode %v", v.MouseMode)
	}
}

func TestTabsTurnThroughEveryView(t *testing.T) {
	s := newScreen(t, 120, 40, nil).show(lanestest.Converging())
	for _, want := range []string{"[3 Path]", "[4 Nodes]", "[5 Engine]", "[6 Events]", "[7 Findings]", "[1 Services]", "[2 Timeline]"} {
		s.press("tab").has(want)
	}
}

func TestQuittingKeysQuitAndEscapeNeverDoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		quits := func(keys ...string) bool {
			s := newScreen(t, 120, 40, nil).show(lanestest.Converging())
			s.messages()
			s.press(keys...)
			for _, m := range s.messages() {
				if _, ok := m.(tea.QuitMsg); ok {
					return true
				}
			}
			return false
		}
		for _, keys := range [][]string{{"q"}, {"ctrl+c"}, {":", "ctrl+c"}, {"?", "ctrl+c"}, {"1", "/", "ctrl+c"}} {
			if !quits(keys...) {
				t.Errorf("%v does not quit", keys)
			}
		}
		for _, keys := range [][]string{{"esc", "esc", "esc", "esc"}, {"?", "q"}, {":", "q"}, {"1", "/", "q"}} {
			if quits(keys...) {
				t.Errorf("%v quits", keys)
			}
		}
	})
}

// ticks counts the ticks that come within d of fake time.
func ticks(t *testing.T, s *screen, d time.Duration) int {
	t.Helper()
	start, n := time.Now(), 0
	for time.Since(start) < d {
		msgs := s.messages()
		if len(msgs) == 0 {
			return n
		}
		n += len(msgs)
		s.clock.set(s.clock.Now().Add(time.Second))
		s.send(msgs...)
	}
	return n
}

func TestAnIdleScreenTicksOnceASecondInEveryView(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScreen(t, 120, 40, nil).show(lanestest.Converged())
		if n := ticks(t, s, 20*time.Second); n > 21 || n < 15 {
			t.Errorf("%d ticks in 20 s while following", n)
		}
		// The clock and the ages move while the picture is paused and in
		// every other view.
		for _, key := range []string{"space", "1", "3", "4", "5", "6"} {
			s = newScreen(t, 120, 40, nil).show(lanestest.Converged()).press(key)
			if n := ticks(t, s, 20*time.Second); n > 21 || n < 15 {
				t.Errorf("%d ticks in 20 s after %s", n, key)
			}
		}
		s = newScreen(t, 120, 40, nil).show(lanestest.Converging())
		if n := ticks(t, s, 10*time.Second); n > 51 {
			t.Errorf("%d ticks in 10 s while converging", n)
		}
		s = newScreen(t, 120, 40, nil)
		if n := ticks(t, s, 10*time.Second); n != 0 {
			t.Errorf("%d ticks before the first snapshot", n)
		}
	})
}

func TestASnapshotThatOnlyMovesTimeIsNotDrawnAtOnce(t *testing.T) {
	s := newScreen(t, 120, 40, nil).show(lanestest.Web(1500 * time.Millisecond).Snapshot())
	before := s.m.View().Content
	s.show(lanestest.Web(1900 * time.Millisecond).Snapshot())
	if s.m.View().Content != before {
		t.Error("the frame changed although only time moved")
	}
	s.show(lanestest.Web(2500 * time.Millisecond).Snapshot())
	if s.m.View().Content == before {
		t.Error("the frame did not change although an action and pods came")
	}
}

func TestASnapshotChangesTheCellsOfWhatChanged(t *testing.T) {
	s := newScreen(t, 120, 40, nil)
	row := func(label string) string {
		for _, l := range strings.Split(s.text(), "\n") {
			if head, _, ok := strings.Cut(l, "│"); ok && strings.Contains(head, label) {
				return l
			}
		}
		return ""
	}
	s.show(lanestest.Web(4600 * time.Millisecond).Snapshot())
	if r := row("node-1"); !strings.Contains(r, "─╌") && !strings.Contains(r, "━╌") && !strings.Contains(r, "┈") || !strings.HasSuffix(r, "4  −1 missing") {
		t.Errorf("node-1 behind: %q", r)
	}
	s.show(lanestest.Web(4820 * time.Millisecond).Snapshot())
	if r := row("node-1"); !strings.Contains(r, "5") {
		t.Errorf("node-1 after its arrival: %q", r)
	}
}

func TestNoColourMeansNoColour(t *testing.T) {
	for _, env := range [][]string{{"NO_COLOR=1"}, {"NO_COLOR=anything"}, {"NO_COLOR=false"}} {
		s := newScreen(t, 120, 40, func(o *ui.Options) { o.Environ, o.Theme = env, "auto" }).show(lanestest.Converging())
		if c := s.m.View().Content; strings.Contains(c, "38;2") || strings.Contains(c, "[3") {
			t.Errorf("%v: colours in %q…", env, c[:200])
		}
	}
	s := newScreen(t, 120, 40, func(o *ui.Options) { o.Environ = []string{"NO_COLOR="} }).show(lanestest.Converging())
	if c := s.m.View().Content; !strings.Contains(c, "38;2") {
		t.Error("an empty NO_COLOR took the colours")
	}
}

func TestTheBackgroundChoosesTheThemeAndTheFlagOverridesIt(t *testing.T) {
	white := tea.BackgroundColorMsg{Color: rgb{}}
	auto := newScreen(t, 120, 40, func(o *ui.Options) { o.Theme = "" }).show(lanestest.Converging())
	dark := auto.m.View().Content
	if light := auto.send(white).m.View().Content; light == dark {
		t.Error("a light background changed nothing")
	}
	auto.send(tea.ColorProfileMsg{Profile: colorprofile.ANSI})
	if c := auto.m.View().Content; strings.Contains(c, "38;2") || strings.Contains(c, "\x1b[33m") || strings.Contains(c, "[93m") {
		t.Error("16 colours on white hold more than 16, or yellow")
	}
	fixed := newScreen(t, 120, 40, nil).show(lanestest.Converging())
	if fixed.m.View().Content != fixed.send(white).m.View().Content {
		t.Error("--theme dark gave way to the background")
	}
}

// rgb is white.
type rgb struct{}

func (rgb) RGBA() (r, g, b, a uint32) { return 0xffff, 0xffff, 0xffff, 0xffff }
