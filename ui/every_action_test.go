package ui_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/kconverge/kconverge/engine/lanes/lanestest"
	"github.com/kconverge/kconverge/engine/live"
	"github.com/kconverge/kconverge/engine/timeline"
	"github.com/kconverge/kconverge/ui"
	"github.com/kconverge/kconverge/ui/view"
)

// deed is how an action shows what it does.
type deed struct {
	before string // keys that lead to where it means something
	shows  string // what the screen then shows, and did not before
	tells  string // or what it tells the recording's player
	snap   func() *timeline.Snapshot
	sends  tea.Msg // or what it asks of the terminal
	quits  bool
}

// deeds has every action of view.Actions: one that is missing fails the test below.
var deeds = map[view.Action]deed{
	view.Up:       {before: "j j j j j j", shows: "›slices (1)"},
	view.Down:     {before: "j j j j j", shows: "›endpoints v1"},
	view.Left:     {shows: "at 12:04:18.875"},
	view.Right:    {before: "left left", shows: "at 12:04:18.875"},
	view.FarLeft:  {shows: "at 12:04:17.760"},
	view.FarRight: {before: "H H", shows: "at 12:04:17.760"},
	view.PageUp:   {before: "G", shows: "›actions"},
	view.PageDown: {shows: "›reconciler"},
	view.Top:      {before: "G", shows: "›actions"},
	view.Bottom:   {shows: "›reconciler"},

	view.Open:        {shows: "[3 Path]"},
	view.Filter:      {before: "1", shows: "words, !without"},
	view.ZoomIn:      {shows: "100 ms/cell"},
	view.ZoomOut:     {shows: "250 ms/cell"},
	view.Fit:         {before: "+", shows: "250 ms/cell"},
	view.Follow:      {before: "left", shows: "now 12:04:19"},
	view.Pause:       {shows: "paused"},
	view.PrevEpisode: {shows: "at 12:04:16.752"},
	view.NextEpisode: {before: "[ [", shows: "at 12:04:16.752"},
	view.PrevChange:  {before: "3", shows: "change 4 of 5"},
	view.NextChange:  {before: "3 p", shows: "change 5 of 5"},
	view.FoldQuiet:   {before: "z", shows: "folding quiet"},
	view.MarkTime:    {before: "left left m left", shows: "B to A"},
	view.UnfoldPods:  {shows: "▾"},
	view.AllNodes:    {before: "a", snap: func() *timeline.Snapshot { return manyEndpoints(7, 20) }, shows: "all 20 nodes"},
	view.Matrix:      {before: "4", shows: "3 nodes x 7 endpoints"},
	view.SortRows:    {before: "4 x", shows: "nodes by name"},
	view.Compare:     {before: "3", shows: "is kept"},
	view.LogScale:    {before: "3", shows: "the axes are logarithmic"},
	view.NextDiffer:  {before: "4 x", shows: "of 2 that differ"},
	view.PrevDiffer:  {before: "4 x", shows: "of 2 that differ"},
	view.Copy:        {shows: "copied what was true"},

	view.Slower:      {tells: "speed 0.5"},
	view.Faster:      {tells: "speed 2"},
	view.PrevEvent:   {tells: "step -1"},
	view.NextEvent:   {tells: "step 1"},
	view.NextStep:    {tells: "step to 0"},
	view.PlayEpisode: {tells: "step to 1"},
	view.ShowCursor:  {before: "left left", tells: "seek 12:04:18.750"},
	view.GoTo:        {shows: "15:04:05"},

	view.Scale:     {shows: "> 5"},
	view.Restart:   {shows: "restart web?"},
	view.DeletePod: {before: "j j j j", shows: "delete pod web"},
	view.Faults:    {shows: "sync-delay=1s@node-1"},
	view.Traffic:   {shows: "connections a second from each node"},
	view.Export:    {shows: "export default/web"},
	view.CopyHint:  {shows: "copied: " + hint},
	view.Save:      {shows: "save the last minutes"},

	view.Show(view.Services): {shows: "[1 Services]"},
	view.Show(view.Timeline): {before: "1", shows: "[2 Timeline]"},
	view.Show(view.Path):     {shows: "[3 Path]"},
	view.Show(view.Nodes):    {shows: "[4 Nodes]"},
	view.Show(view.Engine):   {shows: "[5 Engine]"},
	view.Show(view.Events):   {shows: "[6 Events]"},
	view.Show(view.Findings): {shows: "[7 Findings]"},
	view.NextView:            {shows: "[3 Path]"},
	view.PrevView:            {shows: "[1 Services]"},

	view.Help:    {shows: "help: Timeline"},
	view.Palette: {shows: "all actions"},
	view.Back:    {before: "enter", shows: "[2 Timeline]"},
	view.Mouse:   {shows: "the mouse selects text"},
	view.Redraw:  {sends: tea.ClearScreen()},
	view.Quit:    {quits: true},
}

// options are what a deed needs.
func (d deed) options(group string, r *tape) func(*ui.Options) {
	return func(o *ui.Options) {
		b := &breaker{}
		o.Actions, o.Faults, o.Save = b, b, func(string) error { return nil }
		o.Export, o.ExportFormats = func(ui.Export) error { return nil }, []string{"html"}
		if group == view.GroupPlay {
			o.Recorded, o.Replay = true, r
		}
	}
}

func (d deed) snapshot() *timeline.Snapshot {
	if d.snap != nil {
		return d.snap()
	}
	return lanestest.Converging()
}

func newTape(snap *timeline.Snapshot) *tape {
	to := snap.Now.Truncate(time.Second)
	return &tape{status: live.ReplayStatus{From: to.Add(-10 * time.Minute), To: to, At: to.Add(-5 * time.Minute), Speed: 1, Event: 1234, Events: 5678}}
}

// TestEveryActionDoesWhatItIsFor: by each of its keys, and by its name in the palette.
func TestEveryActionDoesWhatItIsFor(t *testing.T) {
	for _, i := range view.Actions {
		d, ok := deeds[i.Action]
		if !ok {
			t.Errorf("nothing tells what %s does: give it an entry in deeds", i.Action)
			continue
		}
		for _, key := range i.Keys {
			t.Run(string(i.Action)+" by "+key, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { d.done(t, i, key) })
			})
		}
		t.Run(string(i.Action)+" by name", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d.done(t, i, append(append([]string{":"}, strings.Split(string(i.Action), "")...), "enter")...)
			})
		})
	}
	for a := range deeds {
		if _, ok := view.InfoOf(a); !ok {
			t.Errorf("there is no action %s any more", a)
		}
	}
}

// done does the deed by the keys and looks for what it shows.
func (d deed) done(t *testing.T, i view.Info, keys ...string) {
	snap := d.snapshot()
	r := newTape(snap)
	s := newScreen(t, 120, 40, d.options(i.Group, r)).show(snap)
	s.press(strings.Fields(d.before)...)
	s.messages()
	r.forget()
	if d.shows != "" {
		s.lacks(d.shows)
	}
	s.press(keys...)
	if d.shows != "" {
		s.has(d.shows)
	}
	msgs := s.messages()
	if d.tells != "" && r.told() != d.tells {
		t.Errorf("%v told the player %q, not %q", keys, r.told(), d.tells)
	}
	if d.sends != nil && !slices.ContainsFunc(msgs, func(m tea.Msg) bool { return fmt.Sprintf("%T", m) == fmt.Sprintf("%T", d.sends) }) {
		t.Errorf("%v asked for %v", keys, msgs)
	}
	if d.quits != slices.ContainsFunc(msgs, func(m tea.Msg) bool { _, quit := m.(tea.QuitMsg); return quit }) {
		t.Errorf("%v: it quits is %v", keys, !d.quits)
	}
	if d.shows == "" && d.tells == "" && d.sends == nil && !d.quits {
		t.Error("nothing is looked for")
	}
}
