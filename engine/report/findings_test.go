package report

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

func TestFindingsAlone(t *testing.T) {
	at := time.Date(2026, 1, 1, 11, 59, 0, 0, time.UTC)
	r := &Report{
		Source: Source{Kind: "cluster", Name: "dev"}, AsOf: at.Add(time.Minute), Window: Window{To: at.Add(time.Minute)},
		Findings: []Finding{
			{Code: "KC999", Severity: "error", Object: "Service default/\x1b[31mweb", Message: "one two three four five six seven eight nine ten eleven", Fix: "do\nit", Since: &at},
			{Code: "KC998", Severity: "info", Object: "Node n1", Message: "old", Fix: "nothing", Since: new(at.Add(-48 * time.Hour))},
		},
	}
	var b bytes.Buffer
	if err := r.WriteFindings(&b, TextOptions{Width: 60, ASCII: true}); err != nil {
		t.Fatal(err)
	}
	want := `cluster dev, as of 12:00:00.000

error    KC999  Service default/[31mweb  since 11:59:00
         one two three four five six seven eight nine ten
         eleven
       > do it

info     KC998  Node n1  since 2025-12-30 11:59:00
         old
       > nothing
`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
	b.Reset()
	r.Findings = nil
	if err := r.WriteFindings(&b, TextOptions{}); err != nil || !strings.HasSuffix(b.String(), "\n\nnothing found\n") {
		t.Errorf("%v %q", err, b.String())
	}
}

func TestWrapKeepsEveryWord(t *testing.T) {
	for _, s := range []string{"", "a", "日本語 日本語 日本語 wide", strings.Repeat("long", 30) + " x", "a  b   c"} {
		lines := Wrap(s, 10)
		if got := strings.Join(lines, " "); got != strings.Join(strings.Fields(s), " ") {
			t.Errorf("%q became %q", s, lines)
		}
	}
	if got := Wrap("日本語 日本語 日本語", 10); len(got) != 3 {
		t.Errorf("wide characters are not counted: %q", got)
	}
}
