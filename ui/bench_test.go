package ui_test

import (
	"testing"

	tea "charm.land/bubbletea/v2"

	"github.com/kconverge/kconverge/engine/lanes/lanestest"
	"github.com/kconverge/kconverge/ui"
)

// BenchmarkFrame draws whole frames of 200x50 and turns them into what is sent
// to Bubble Tea.
func BenchmarkFrame(b *testing.B) {
	for _, v := range []struct{ name, key string }{{"timeline", "2"}, {"path", "3"}, {"services", "1"}} {
		b.Run(v.name, func(b *testing.B) {
			snap := lanestest.Converging()
			m, err := ui.New(options(&clock{t: snap.Now}))
			if err != nil {
				b.Fatal(err)
			}
			m.Update(tea.WindowSizeMsg{Width: 200, Height: 50})
			m.Update(ui.Show(snap))
			m.Update(tea.KeyPressMsg{Code: rune(v.key[0]), Text: v.key})
			b.ReportAllocs()
			for b.Loop() {
				m.Frame()
			}
		})
	}
}
