package draw

import (
	"math/rand/v2"
	"testing"

	uv "github.com/charmbracelet/ultraviolet"

	"github.com/kconverge/kconverge/ui/theme"
)

func TestAFrameIsWhatUltravioletRenders(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	words := []string{" ", "  ", "a", "web-7d9c", "● converged", "▸ 3 pods", "日本", "é", "─", "\x1b[31mred", "   x   "}
	for _, th := range []*theme.Theme{&theme.Dark, &theme.Light, &theme.ANSI, &theme.ANSILight, &theme.HighContrast, &theme.HighContrastLight, &theme.Plain} {
		s := NewScreen(40, 12, th, &Unicode)
		for n := range 200 {
			s.Reset()
			for range r.IntN(60) {
				s.Text(r.IntN(44)-2, r.IntN(14)-1, theme.Role(r.IntN(len(th.Styles))), words[r.IntN(len(words))])
			}
			if got, want := s.Render(), uv.TrimSpace(s.buf.Render()); got != want {
				t.Fatalf("%s, frame %d:\n%q\nbut ultraviolet\n%q", th.Name, n, got, want)
			}
		}
	}
}
