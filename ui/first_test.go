package ui_test

import (
	"strings"
	"testing"

	"github.com/kconverge/kconverge/engine/lanes/lanestest"
	"github.com/kconverge/kconverge/ui"
)

func TestWhereToStartIsToldUntilTheFirstKey(t *testing.T) {
	for _, w := range []int{80, 120} {
		used := 0
		s := newScreen(t, w, 24, func(o *ui.Options) { o.FirstUse = func() { used++ } }).show(lanestest.Converging())
		last := func() string {
			lines := strings.Split(strings.TrimRight(s.text(), "\n"), "\n")
			return lines[len(lines)-1]
		}
		if got := last(); !strings.Contains(got, "New here?  ? what the keys do  : find any action") {
			t.Errorf("%d columns: the last line is %q", w, got)
		}
		if s.press("down"); used != 1 || strings.Contains(last(), "New here") {
			t.Errorf("%d columns: told %d times, the last line is %q", w, used, last())
		}
		if s.press("down"); used != 1 {
			t.Errorf("told %d times", used)
		}
	}
}
