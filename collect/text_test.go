package collect

import "testing"

func TestPlainTextHoldsNothingThatATerminalObeys(t *testing.T) {
	for in, want := range map[string]string{
		"web-7d9c":                  "web-7d9c",
		"héllo 世界":                  "héllo 世界",
		"\x1b[31mred\x1b]0;t\a":     "[31mred]0;t",
		"one\ntwo\r\tthree":         "one two  three",
		"C1 \u009b31m, DEL \x7f":    "C1 31m, DEL ",
		"\u202egnp.exe\u2066":       "gnp.exe",
		"line\u2028paragraph\u2029": "lineparagraph",
		"not UTF-8: \xff":           "not UTF-8: \ufffd",
	} {
		if got := Plain(in); got != want {
			t.Errorf("Plain(%q) = %q, want %q", in, got, want)
		}
	}
}
