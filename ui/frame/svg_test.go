package frame

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/kconverge/kconverge/ui/draw"
	"github.com/kconverge/kconverge/ui/theme"
)

func TestAFrameBecomesWellFormedSVGWithItsTextAndColours(t *testing.T) {
	s := draw.NewScreen(12, 2, &theme.Dark, &draw.Unicode)
	s.Text(0, 0, theme.Bad, `<&"> 中`)
	s.Text(0, 1, theme.Selected, "tab")
	var b strings.Builder
	if err := SVG(&b, s, ColorsFor(&theme.Dark)); err != nil {
		t.Fatal(err)
	}
	d, text := xml.NewDecoder(strings.NewReader(b.String())), ""
	for {
		tok, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if c, ok := tok.(xml.CharData); ok {
			text += strings.TrimSpace(string(c))
		}
	}
	if text != `<&">中tab` {
		t.Errorf("text %q", text)
	}
	for _, c := range []string{"#ff8f8f", "#7cc7ff", "#16181d"} {
		if !strings.Contains(b.String(), c) {
			t.Errorf("colour %s is missing", c)
		}
	}
	if ColorsFor(&theme.Light) != LightColors {
		t.Error("a light theme is drawn on a dark terminal")
	}
}
