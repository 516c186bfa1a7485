package ui_test

import (
	"fmt"
	"testing"
	"testing/synctest"

	tea "charm.land/bubbletea/v2"

	"github.com/kconverge/kconverge/engine/lanes/lanestest"
	"github.com/kconverge/kconverge/engine/timeline"
	"github.com/kconverge/kconverge/ui"
)

func TestAFindingLeadsToWhatItIsAbout(t *testing.T) {
	s := newScreen(t, 120, 40, nil).show(troubled()).press("7").has("[7 Findings]", "KC207", "Service shop/checkout")
	s.press("enter").has("[2 Timeline]", "shop/checkout")
	// The second is a node's.
	s.press("7", "j").has("KC311 a node's kube-proxy says that it is not healthy", "to do: read the log").press("enter").has("[4 Nodes]", "› node-2")
	// The fourth is of a change.
	s.press("7", "/", "K", "C", "5", "0", "1", "enter").has("KC501").press("enter").has("[3 Path]", "default/web")
	// And a source is told of among the events.
	s.press("7", "esc", "G", "k").has("KC401 something may not be read").press("enter").has("[6 Events]")
}

func TestAFindingStaysChosenWhileTheListChanges(t *testing.T) {
	s := newScreen(t, 120, 40, nil).show(troubled()).press("7", "j", "j", "j").has("KC310 syncs of a node's rules fail")
	snap := troubled()
	snap.Nodes[1].Proxy = nil // one above it goes
	s.show(snap).has("KC310 syncs of a node's rules fail").lacks("KC311")
}

func TestTheFilterOfFindings(t *testing.T) {
	s := newScreen(t, 120, 40, nil).show(troubled()).press("7", "/")
	for _, r := range "warning !kc305" {
		if r == ' ' {
			s.press("space")
			continue
		}
		s.press(string(r))
	}
	s.has("KC310", "KC501").lacks("KC207").lacks("KC305")
	s.press("enter", "esc").has("KC207", "KC305")
	s.press("/", "x", "x", "x").has("no finding matches")
}

func TestFindingsByMouse(t *testing.T) {
	s := newScreen(t, 120, 40, nil).show(troubled()).press("7")
	click := func(y int) { s.send(tea.MouseClickMsg{X: 10, Y: y, Button: tea.MouseLeft}) }
	click(5)
	s.has("KC311 a node's kube-proxy").lacks("[4 Nodes]")
	click(5)
	s.has("[4 Nodes]")
}

// TestManyServicesAreJudgedBesideTheFrame: their findings come as a message.
func TestManyServicesAreJudgedBesideTheFrame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		snap := troubled()
		for i := range 300 {
			svc := *snap.Service("shop", "cart")
			svc.Name = fmt.Sprintf("more-%d", i)
			snap.Services = append(snap.Services, &svc)
		}
		s := newScreen(t, 120, 40, nil).show(snap).press("7").lacks("KC207")
		s.send(s.messages()...).has("KC207", "KC101")
	})
}

func TestServicesSayHowMuchWasFound(t *testing.T) {
	newScreen(t, 120, 40, nil).show(troubled()).press("1").has("found", "1 err")
	newScreen(t, 120, 40, nil).show(lanestest.Quiet()).press("1").lacks(" err").lacks(" warn")
	newScreen(t, 120, 40, nil).show(&timeline.Snapshot{Now: lanestest.Start}).press("7").has("nothing found")
	newScreen(t, 120, 40, nil).send(ui.Ended()).press("7")
}
