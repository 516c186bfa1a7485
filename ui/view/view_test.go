package view

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kconverge/kconverge/engine/lanes"
)

func TestFilterWordsMustAllMatchAndNegatedOnesMustNot(t *testing.T) {
	names := []string{"default/web", "default/web-admin", "kube-system/dns", "shop/website"}
	for pattern, want := range map[string]string{
		"":                 "0 1 2 3",
		"   ":              "0 1 2 3",
		"web":              "0 1 3",
		"web def":          "0 1",
		"web !admin":       "0 3",
		"!web":             "2",
		"!":                "0 1 2 3",
		"ksd":              "2",
		"nothing like it":  "",
		"WEB !ADMIN !shop": "0",
	} {
		got := Match(pattern, names)
		seen := map[int]bool{}
		for _, i := range got {
			seen[i] = true
		}
		var sorted []string
		for i := range names {
			if seen[i] {
				sorted = append(sorted, fmt.Sprint(i))
			}
		}
		if s := strings.Join(sorted, " "); s != want {
			t.Errorf("%q: %s, want %s", pattern, s, want)
		}
	}
	if got := Match("web", names); got[0] != 0 {
		t.Errorf("best match of web is %s", names[got[0]])
	}
}

func TestTheRulerHasRoundTicksThatDoNotOverlap(t *testing.T) {
	for _, total := range []time.Duration{0, time.Millisecond, 37 * time.Millisecond, 5460 * time.Millisecond, time.Minute, 40 * time.Hour, 1<<63 - 1} {
		for _, cols := range []int{-1, -20, -60, -140, 1, 20, 60, 140} {
			log := cols < 0
			cols = max(cols, -cols)
			r := newRuler(total, cols, log)
			end := 0
			for _, k := range r.ticks {
				if k.col < end || k.col+len(k.label) > cols {
					t.Errorf("%v on %d: label %q at %d", total, cols, k.label, k.col)
				}
				end = k.col + len(k.label)
			}
			if r.col(total) > cols-1 || r.col(-time.Second) != 0 || r.col(total/2*3+time.Hour) != cols-1 && total < 1<<62 {
				t.Errorf("%v on %d: columns %d %d %d", total, cols, r.col(total), r.col(-time.Second), r.col(total/2*3+time.Hour))
			}
		}
	}
	r := newRuler(5460*time.Millisecond, 66, false)
	var got []string
	for _, k := range r.ticks {
		got = append(got, k.label)
	}
	if s := strings.Join(got, " "); s != "0 1 s 2 s 3 s 4 s 5 s" {
		t.Errorf("ticks %q", s)
	}
	got = nil
	r = newRuler(70*time.Second, 66, true)
	for _, k := range r.ticks {
		got = append(got, k.label)
	}
	if s := strings.Join(got, " "); s != "0 10 ms 100 ms 1 s 10 s" {
		t.Errorf("by logarithm: ticks %q", s)
	}
	if ten, hundred := r.col(10*time.Millisecond), r.col(100*time.Millisecond); hundred-ten < 10 {
		t.Errorf("by logarithm 10 ms stand at %d and 100 ms at %d", ten, hundred)
	}
}

func TestRowsWithADifferenceStayWhenThereIsLittleRoom(t *testing.T) {
	rows := []lanes.InstantRow{{Key: "wanted"}, {Key: "slices"}, {Key: "a", Tone: lanes.Good}, {Key: "b", Tone: lanes.Bad}, {Key: "b", Tone: lanes.Warn}}
	keys := func(rs []lanes.InstantRow) string {
		var out []string
		for _, r := range rs {
			out = append(out, r.Key)
		}
		return strings.Join(out, " ")
	}
	if got, left := chooseRows(rows, "wanted", 2); keys(got) != "b b" || left != 3 {
		t.Errorf("%s, %d left", keys(got), left)
	}
	if got, left := chooseRows(rows, "slices", 4); keys(got) != "slices b b" || left != 2 {
		t.Errorf("%s, %d left", keys(got), left)
	}
	if got, left := chooseRows(rows, "slices", 5); len(got) != 5 || left != 0 {
		t.Errorf("%s, %d left", keys(got), left)
	}
}

func TestLanesAndPanelShareTheScreen(t *testing.T) {
	for _, c := range []struct{ avail, n, p, lanes, panel int }{
		{40, 13, 10, 13, 27}, // both fit: the panel takes the rest
		{16, 13, 10, 13, 3},  // a small screen: lanes first
		{16, 40, 10, 13, 3},  // many lanes scroll
		{30, 60, 12, 20, 10}, // a tall screen keeps some of the panel
		{8, 13, 10, 8, 0},    // no room for a panel
		{13, 12, 9, 12, 0},   // one line is no panel
	} {
		if l, p := divide(c.avail, c.n, c.p); l != c.lanes || p != c.panel {
			t.Errorf("%d lines for %d lanes and %d: %d and %d, want %d and %d", c.avail, c.n, c.p, l, p, c.lanes, c.panel)
		}
	}
}

func TestSentencesWrapAtWords(t *testing.T) {
	if got := strings.Join(Wrap("one two three four", 9), "|"); got != "one two|three|four" {
		t.Errorf("%q", got)
	}
}

func TestAListKeepsItsChoiceInView(t *testing.T) {
	var l list
	for _, a := range []Action{Down, Down, Down, PageDown, Bottom, Up} {
		if !l.do(a, 20, 5) {
			t.Fatalf("%s does not move", a)
		}
		if l.at < l.first || l.at >= l.first+5 || l.first < 0 || l.first > 15 {
			t.Fatalf("after %s: at %d, first %d", a, l.at, l.first)
		}
	}
	if l.at != 18 {
		t.Errorf("at %d", l.at)
	}
	if l.do(Open, 20, 5) {
		t.Error("open moves")
	}
}

func TestEveryActionHasANameAHelpTextAndAGroup(t *testing.T) {
	seen := map[Action]bool{}
	for _, i := range Actions {
		if seen[i.Action] || i.Help == "" || i.Group == "" || len(i.Keys) == 0 {
			t.Errorf("%+v", i)
		}
		seen[i.Action] = true
	}
}
