package ui_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"pgregory.net/rapid"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/engine/lanes/lanestest"
	"github.com/kconverge/kconverge/engine/timeline"
	"github.com/kconverge/kconverge/ui"
	"github.com/kconverge/kconverge/ui/view"
)

// sound tells what is wrong with a frame, or "".
func sound(s *screen, w, h int) string {
	lines := strings.Split(s.text(), "\n")
	if len(lines) > h {
		return fmt.Sprintf("%d lines of %d", len(lines), h)
	}
	for i, l := range lines {
		if n := ansi.StringWidthWc(l); n > w {
			return fmt.Sprintf("line %d is %d wide: %q", i, n, l)
		}
		for _, r := range l {
			if unicode.IsControl(r) || unicode.In(r, unicode.Cf) {
				return fmt.Sprintf("line %d holds %U", i, r)
			}
		}
	}
	// Escape sequences are only those that choose a style.
	frame := s.m.View().Content
	for _, part := range strings.Split(frame, "\x1b")[1:] {
		end := strings.IndexByte(part, 'm')
		if !strings.HasPrefix(part, "[") || end < 0 || strings.Trim(part[1:end], "0123456789;:") != "" {
			return fmt.Sprintf("escape sequence %q", part[:min(len(part), 12)])
		}
	}
	return ""
}

var everyView = [][]string{{"1"}, {"2"}, {"2", "u"}, {"3"}, {"3", "p"}, {"e"}, {"j", "j", "j"}, {"G"}, {"4"}, {"x"}, {"v"}, {"v"}, {"V"}, {"l", "l", "j", "o"}, {"G", "L"}, {"x"}, {"5"}, {"6"}, {"7"}, {"7", "j"}, {"?"}, {"esc", ":"}, {"esc", "2", "j", "j", "j", "j", "d"}, {"esc", "s"}, {"esc"}}

func TestHostileNamesBreakNoFrame(t *testing.T) {
	snap := hostile()
	for _, size := range [][2]int{{48, 14}, {60, 30}, {80, 24}, {120, 40}, {200, 50}} {
		for _, ascii := range []bool{false, true} {
			for _, svc := range []int{0, 3, 5} {
				s := newScreen(t, size[0], size[1], func(o *ui.Options) {
					o.ASCII, o.Actions, o.Title, o.Namespace = ascii, &doer{}, "\x1b[5mtitle\u4e2d", "\u202ens"
					o.Focus = snap.Services[svc].Namespace + "/" + snap.Services[svc].Name
				}).show(snap)
				for _, keys := range everyView {
					s.press(keys...)
					if bad := sound(s, size[0], size[1]); bad != "" {
						t.Errorf("%v ascii=%v after %v: %s", size, ascii, keys, bad)
					}
				}
			}
		}
	}
}

// poison puts hostile text into every field of plain text there is, so that one which is
// added later is not forgotten. Names of states, which are types of their own, stay.
func poison(v reflect.Value, n *int, seen map[uintptr]bool) {
	switch v.Kind() {
	case reflect.String:
		if v.CanSet() && v.Type() == reflect.TypeFor[string]() {
			v.SetString(evil[*n%len(evil)])
			*n++
		}
	case reflect.Pointer:
		if v.IsNil() || seen[v.Pointer()] {
			return
		}
		seen[v.Pointer()] = true
		poison(v.Elem(), n, seen)
	case reflect.Interface:
		poison(v.Elem(), n, seen)
	case reflect.Slice:
		for i := range v.Len() {
			poison(v.Index(i), n, seen)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				poison(v.Field(i), n, seen)
			}
		}
	}
}

func TestHostileTextInEveryFieldBreaksNoFrame(t *testing.T) {
	for name, snap := range map[string]*timeline.Snapshot{"converging": lanestest.Converging(), "fallback": lanestest.Fallback(), "cells": manyEndpoints(7, 9), "found": troubled()} {
		n := 0
		for _, p := range snap.Services[0].Rules.All() {
			poison(reflect.ValueOf(p), &n, map[uintptr]bool{})
		}
		poison(reflect.ValueOf(snap), &n, map[uintptr]bool{})
		if n < 100 {
			t.Fatalf("%s: only %d texts", name, n)
		}
		for _, size := range [][2]int{{48, 14}, {80, 24}, {200, 50}} {
			s := newScreen(t, size[0], size[1], func(o *ui.Options) {
				o.Actions, o.Title, o.Hint, o.Waiting = &doer{}, evil[0], evil[1], evil[2]
				o.Focus = snap.Services[0].Namespace + "/" + snap.Services[0].Name
			})
			if bad := sound(s, size[0], size[1]); bad != "" {
				t.Errorf("%s %v at first: %s", name, size, bad)
			}
			s.show(snap)
			for _, keys := range everyView {
				s.press(keys...)
				if bad := sound(s, size[0], size[1]); bad != "" {
					t.Errorf("%s %v after %v: %s", name, size, keys, bad)
				}
			}
		}
	}
}

func TestTheEdgesOfTheLanesStandInOneColumn(t *testing.T) {
	s := newScreen(t, 120, 40, nil).show(hostile())
	for _, l := range strings.Split(s.text(), "\n")[6:19] {
		col := 0
		for _, r := range l {
			if r == '│' {
				break
			}
			col += ansi.StringWidthWc(string(r))
		}
		if col != 19 {
			t.Errorf("the lane begins at column %d: %q", col, l)
		}
	}
}

func TestAResizeStormLeavesASoundFrame(t *testing.T) {
	snaps := []tea.Msg{ui.Show(lanestest.Converging()), ui.Show(hostile()), ui.Show(manyServices()), ui.Show(lanestest.Converged())}
	var keys []string // all of them, but for those that quit
	for _, i := range view.Actions {
		if i.Action != view.Quit {
			keys = append(keys, i.Keys...)
		}
	}
	rapid.Check(t, func(rt *rapid.T) {
		s := newScreen(t, 120, 40, func(o *ui.Options) { o.Actions = &doer{} })
		w, h := 120, 40
		for i := rapid.IntRange(1, 15).Draw(rt, "steps"); i > 0; i-- {
			switch rapid.IntRange(0, 3).Draw(rt, "what") {
			case 0:
				w, h = rapid.IntRange(1, 210).Draw(rt, "w"), rapid.IntRange(1, 60).Draw(rt, "h")
				s.send(tea.WindowSizeMsg{Width: w, Height: h})
			case 1:
				s.send(rapid.SampledFrom(snaps).Draw(rt, "snap"))
			default:
				s.press(rapid.SampledFrom(keys).Draw(rt, "key"))
			}
			if bad := sound(s, w, h); bad != "" {
				rt.Fatalf("at %d x %d: %s", w, h, bad)
			}
		}
	})
}

func TestASmallTerminalIsToldWhatIsNeeded(t *testing.T) {
	s := newScreen(t, 40, 10, nil).show(lanestest.Converging()).has("needs 48 x 14", "this is 40 x 10")
	s.send(tea.WindowSizeMsg{Width: 48, Height: 14}).has("[2 Timeline]").lacks("needs")
}

// bare is what a model may hand out before it knows much: nothing is filled in
// that need not be.
func bare() *timeline.Snapshot {
	now := lanestest.Start
	rules := timeline.PlaneID{Kind: timeline.PlaneRules, Node: "n"}
	paths := []*timeline.Path{
		{}, {ID: "a", Op: timeline.OpAdd, Status: timeline.StatusOpen}, {ID: "b", Op: timeline.OpService, Origin: timeline.Moment{At: now}},
		{ID: "c", Op: timeline.OpRemove, Endpoint: timeline.Endpoint{Node: "n"}, Origin: timeline.Moment{At: now}, Rules: []timeline.Hop{{}, {Plane: rules, Status: timeline.StatusSuperseded}}},
		{ID: "d", Op: timeline.OpAdd, Cause: timeline.CausePodReady, Origin: timeline.Moment{At: now}, Slice: &timeline.Hop{At: now.Add(-time.Second), Lag: -time.Second, Status: timeline.StatusArrived}},
		{ID: "e", Op: timeline.OpChange, Origin: timeline.Moment{At: now.Add(time.Hour)}, Rules: []timeline.Hop{{Plane: rules, Status: timeline.StatusOpen}}, Status: timeline.StatusOpen},
	}
	return &timeline.Snapshot{
		Now: now, Nodes: []timeline.Node{{}, {Name: "n", Exists: true}}, Gaps: []timeline.Gap{{}}, Marks: []timeline.Mark{{}, {Kind: "reconcile"}, {Kind: "sync", Node: "n"}, {Kind: "action"}},
		Sources: []timeline.SourceStatus{{}},
		Services: []*timeline.Service{
			{}, {Namespace: "default", Name: "web", Paths: paths, Episodes: []timeline.Episode{{}, {N: 2, Start: now.Add(time.Minute)}}, Pods: []timeline.PodTrack{{}}},
			{Namespace: "default", Name: "planes", RoutedByProxy: true, Slices: &timeline.Plane{}, Endpoints: &timeline.Plane{ID: timeline.PlaneID{Kind: timeline.PlaneEndpoints}},
				Rules:       timeline.PlanesOf(&timeline.Plane{ID: rules, Members: []timeline.Member{{}, {Changes: []timeline.MemberChange{{At: now, Have: true}}}}, Changes: []timeline.PlaneChange{{At: now, Have: 1, Unexpected: 1, Knowledge: timeline.Known}}}),
				Differences: []timeline.Difference{{}}, Spec: &collect.Service{}, Paths: paths},
		},
	}
}

func TestASnapshotThatKnowsLittleBreaksNoFrame(t *testing.T) {
	snap := bare()
	for _, svc := range snap.Services {
		for _, size := range [][2]int{{48, 14}, {80, 24}, {200, 50}} {
			s := newScreen(t, size[0], size[1], func(o *ui.Options) {
				o.Actions, o.Focus = &doer{}, svc.Namespace+"/"+svc.Name
			}).show(snap)
			keys := []string{"1", "enter", "j", "h", "l", "+", "-", "0", "[", "]", "n", "p", "u", "a", "z", "enter", "n", "n", "j", "n", "y", "p", "p", "p", "p", "enter", "s", "esc", "r", "esc", "d", "esc", "4", "j", "y", "x", "j", "l", "o", "y", "enter", "4", "h", "x", "5", "j", "6", "j", "enter", "7", "j", "enter", "?", "esc", "tab", "tab"}
			for i, k := range keys {
				s.press(k)
				if bad := sound(s, size[0], size[1]); bad != "" {
					t.Errorf("%s/%s %v after %v: %s", svc.Namespace, svc.Name, size, keys[:i+1], bad)
				}
			}
			s.show(&timeline.Snapshot{})
			if bad := sound(s, size[0], size[1]); bad != "" {
				t.Error(bad)
			}
		}
	}
}
