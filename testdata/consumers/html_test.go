package consumers

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/kconverge/kconverge/engine/lanes/lanestest"
	"github.com/kconverge/kconverge/engine/timeline"
)

// browser is a page in a headless Chromium.
type browser struct {
	t   *testing.T
	ctx context.Context
	// said are the console's lines and what was refused, asked what was loaded.
	said, asked []string
}

// open shows the page of a Snapshot.
func open(t *testing.T, snap *timeline.Snapshot) *browser {
	t.Helper()
	file := filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(file, exported(t, document(t, snap).HTML), 0o600); err != nil {
		t.Fatal(err)
	}
	b := chromium(t)
	b.do(network.Enable(), log.Enable(), runtime.Enable(), chromedp.Navigate("file://"+file), chromedp.WaitVisible("#timeline svg .row", chromedp.ByQuery))
	return b
}

// chromium starts a headless one, which ends with the test.
func chromium(t *testing.T) *browser {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatalf("this is to be shown in Chromium: make deps installs it: %v", err)
	}
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.WindowSize(1400, 1000),
		chromedp.UserDataDir(profile(t)), chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true),
		chromedp.WSURLReadTimeout(3*time.Minute))
	alloc, cancelAlloc := chromedp.NewExecAllocator(t.Context(), opts...)
	ctx, cancel := chromedp.NewContext(alloc)
	t.Cleanup(func() { _ = chromedp.Cancel(ctx); cancel(); cancelAlloc() })
	b := &browser{t: t, ctx: ctx}
	chromedp.ListenTarget(ctx, func(e any) {
		switch e := e.(type) {
		case *runtime.EventConsoleAPICalled:
			for _, a := range e.Args {
				b.said = append(b.said, string(a.Value))
			}
		case *runtime.EventExceptionThrown:
			b.said = append(b.said, e.ExceptionDetails.Error())
		case *log.EventEntryAdded:
			b.said = append(b.said, e.Entry.Text)
		case *network.EventRequestWillBeSent:
			b.asked = append(b.asked, e.Request.URL)
		}
	})
	return b
}

func (b *browser) do(actions ...chromedp.Action) {
	b.t.Helper()
	if err := chromedp.Run(b.ctx, actions...); err != nil {
		b.t.Fatalf("%v; the page said %q", err, b.said)
	}
}

// ask evaluates an expression.
func ask[T any](b *browser, js string) (out T) {
	b.t.Helper()
	b.do(chromedp.Evaluate(js, &out))
	return out
}

// picture keeps a screenshot where KCONVERGE_SCREENSHOTS names a folder.
func (b *browser) picture(name string) {
	var png []byte
	b.do(chromedp.FullScreenshot(&png, 100))
	if len(png) < 10_000 {
		b.t.Errorf("the screenshot %s has %d bytes", name, len(png))
	}
	if dir := os.Getenv("KCONVERGE_SCREENSHOTS"); dir != "" {
		if err := os.WriteFile(filepath.Join(dir, name+".png"), png, 0o644); err != nil {
			b.t.Fatal(err)
		}
	}
}

const labels = `[...document.querySelectorAll("#timeline .tick")].map(t => t.textContent)`

func TestThePageZoomsPansTellsFiltersAndOpens(t *testing.T) {
	b := open(t, lanestest.Converging())
	if n := ask[int](b, `document.querySelectorAll("#timeline .row").length`); n < 12 {
		t.Errorf("%d lanes", n)
	}
	if n := ask[int](b, `document.querySelectorAll("#changes tr.change").length`); n != 5 {
		t.Errorf("%d changes", n)
	}
	// Zoom: by button, wheel and key; each shows other ticks, and fit all again.
	first := fmt.Sprint(ask[[]string](b, labels))
	b.do(chromedp.Click("#fit", chromedp.ByQuery))
	all := fmt.Sprint(ask[[]string](b, labels))
	if first == all {
		t.Error("the page does not open where something happened")
	}
	was := all
	for what, action := range map[string]chromedp.Action{
		"button": chromedp.Click("#zoom-in", chromedp.ByQuery),
		"wheel":  chromedp.Evaluate(`document.querySelector("#timeline svg").dispatchEvent(new WheelEvent("wheel", {deltaY: -300, clientX: 900, clientY: 200, bubbles: true, cancelable: true}))`, nil),
		"key":    chromedp.Tasks{chromedp.Focus("#timeline svg", chromedp.ByQuery), chromedp.KeyEvent("+"), chromedp.KeyEvent("+"), chromedp.KeyEvent("+")},
	} {
		b.do(action)
		now := fmt.Sprint(ask[[]string](b, labels))
		if now == was {
			t.Errorf("the %s does not zoom: %s", what, now)
		}
		was = now
	}
	b.do(chromedp.Click("#fit", chromedp.ByQuery))
	if now := fmt.Sprint(ask[[]string](b, labels)); now != all {
		t.Errorf("fit shows %s instead of %s", now, all)
	}
	// Opening a change shows its waterfall and its time.
	b.do(chromedp.Click("#changes tr.change", chromedp.ByQuery), chromedp.WaitVisible("tr.waterfall svg", chromedp.ByQuery))
	if text := ask[string](b, `document.querySelector("tr.waterfall").textContent`); !strings.Contains(text, "node-3") || !strings.Contains(text, "slice") {
		t.Errorf("the waterfall: %s", text)
	}
	if now := fmt.Sprint(ask[[]string](b, labels)); now == all {
		t.Error("the timeline does not go to the change that is opened")
	}
	// Hovering over a lane tells what it was.
	b.do(chromedp.Evaluate(`(() => { const r = document.querySelector('[data-key="rules@node-3"] .behind').getBoundingClientRect();
		document.querySelector("#timeline svg").dispatchEvent(new PointerEvent("pointermove", {clientX: r.left + r.width / 2, clientY: r.top + r.height / 2, bubbles: true})) })()`, nil),
		chromedp.WaitVisible("#tip", chromedp.ByQuery))
	if text := ask[string](b, `document.getElementById("tip").textContent`); !strings.HasPrefix(text, "node-3\n") || !strings.Contains(text, "missing") {
		t.Errorf("hovering tells %q", text)
	}
	// The filter leaves what it names, everywhere.
	b.do(chromedp.SendKeys("#filter", "x7k2p", chromedp.ByQuery))
	if n := ask[int](b, `document.querySelectorAll("#changes tr.change").length`); n != 2 {
		t.Errorf("%d changes are called x7k2p", n)
	}
	if n := ask[int](b, `document.querySelectorAll("#timeline .row.node").length`); n != 0 {
		t.Errorf("%d nodes are", n)
	}
	if len(b.said) > 0 {
		t.Errorf("the console says %q", b.said)
	}
	for _, url := range b.asked {
		if !strings.HasPrefix(url, "file://") {
			t.Errorf("the page loads %s", url)
		}
	}
}

// luminance of what is drawn behind everything.
const background = `getComputedStyle(document.body).backgroundColor`

func TestThePageFollowsTheSystemAndTheSwitch(t *testing.T) {
	b := open(t, lanestest.Converging())
	scheme := func(s string) chromedp.Action {
		return emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: s}})
	}
	const dark, light = "rgb(22, 24, 29)", "rgb(250, 250, 250)"
	for _, c := range []struct{ system, want string }{{"dark", dark}, {"light", light}} {
		b.do(scheme(c.system))
		if got := ask[string](b, background); got != c.want {
			t.Errorf("with a %s system the page is %s", c.system, got)
		}
		b.picture("page-" + c.system)
	}
	b.do(chromedp.Evaluate(`(() => { const t = document.getElementById("theme"); t.value = "dark"; t.dispatchEvent(new Event("change")) })()`, nil))
	if got := ask[string](b, background); got != dark {
		t.Errorf("switched to dark the page is %s", got)
	}
	b.do(emulation.SetEmulatedMedia().WithMedia("print"))
	if got := ask[string](b, background); got != "rgb(255, 255, 255)" {
		t.Errorf("printed, the page is %s", got)
	}
	if got := ask[string](b, `getComputedStyle(document.getElementById("tools")).display`); got != "none" {
		t.Error("the tools are printed")
	}
}

// TestNoNameRunsScript: a name that ends the element it is in, one that is markup, in
// every field; opened, hovered and filtered. Even markup that is forced into the page
// does not run, since the policy forbids it.
func TestNoNameRunsScript(t *testing.T) {
	const evil = `</script><script>window.owned=1</script><img src=x onerror="window.owned=1">"'><svg onload=window.owned=1>{{.Data}}<!--<script>`
	b := open(t, hostile(evil))
	b.do(chromedp.Evaluate(`document.querySelectorAll("#changes tr.change").forEach(r => r.click())`, nil))
	b.do(chromedp.Evaluate(`document.querySelectorAll("#timeline .row").forEach(r => { const b = r.getBoundingClientRect(); document.querySelector("#timeline svg").dispatchEvent(new PointerEvent("pointermove", {clientX: b.left + 600, clientY: b.top + 5, bubbles: true})) })`, nil))
	b.do(chromedp.SendKeys("#filter", "img", chromedp.ByQuery))
	if got := ask[string](b, `typeof window.owned + " " + document.querySelectorAll("img").length + " " + document.querySelectorAll("script").length`); got != "undefined 0 2" {
		t.Errorf("owned, images and scripts: %s", got)
	}
	if text := ask[string](b, `document.getElementById("changes").textContent`); !strings.Contains(text, "<img src=x") {
		t.Errorf("the name is not shown as it is: %s", text)
	}
	if len(b.said) > 0 {
		t.Errorf("the console says %q", b.said)
	}
	b.do(chromedp.Evaluate(`document.body.insertAdjacentHTML("beforeend", '<img src=x onerror="window.owned=1"><a id=evil href="javascript:window.owned=1">x</a>'); document.getElementById("evil").click()`, nil))
	b.do(chromedp.Evaluate(`new Promise(done => { const s = document.createElement("script"); s.textContent = "window.owned=1"; document.body.append(s); setTimeout(done, 200) })`, nil, func(p *runtime.EvaluateParams) *runtime.EvaluateParams {
		return p.WithAwaitPromise(true)
	}))
	if got := ask[string](b, `typeof window.owned`); got != "undefined" {
		t.Error("forced markup ran")
	}
	if len(b.said) == 0 {
		t.Error("the policy refused nothing")
	}
}

// profile makes a folder for a browser. Its helpers still write into it for a moment
// when it has ended, so t.TempDir could not be removed.
func profile(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "profile")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		patience := time.After(time.Minute)
		for {
			err := os.RemoveAll(dir)
			if err == nil {
				return
			}
			select {
			case <-patience:
				t.Error(err)
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	})
	return dir
}
