package findings

import "testing"

func TestMistyped(t *testing.T) {
	for _, tc := range []struct {
		a, b string
		want bool
	}{
		{"web", "wed", true},
		{"web", "wbe", true},
		{"cart", "crat", true},
		{"web", "Web", true},
		{"checkout", "chekout", true},
		{"checkout", "chckuot", true},
		{"app", "app", false},
		{"web-1", "web-2", false}, // the next of a row
		{"web", "web2", false},
		{"v1", "v2", false},
		{"web", "api", false},
		{"a", "b", false}, // too short to tell
		{"", "x", false},
		{"frontend", "backend", false},
		{"日本語", "日本誤", true},
	} {
		if got := mistyped(tc.a, tc.b); got != tc.want {
			t.Errorf("%q for %q: %v", tc.a, tc.b, got)
		}
		if got := mistyped(tc.b, tc.a); got != tc.want {
			t.Errorf("%q for %q: %v", tc.b, tc.a, got)
		}
	}
}

func TestDistance(t *testing.T) {
	for _, tc := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"a", "", 1}, {"abc", "acb", 1}, {"abcd", "badc", 2}, {"kitten", "sitting", 3}, {"abc", "xyz", 3}, {"abcdef", "x", 4}} {
		if got := distance(tc.a, tc.b, 3); got != tc.want {
			t.Errorf("%q %q: %d, want %d", tc.a, tc.b, got, tc.want)
		}
	}
}

// TestLinesCanBePasted: nothing that a cluster's names hold is obeyed by a shell.
func TestLinesCanBePasted(t *testing.T) {
	for in, want := range map[string]string{
		"web": "web", "app=web,tier=x": "app=web,tier=x", "": "''", "a b": "'a b'", "$(reboot)": "'$(reboot)'", "a'b": `'a'\''b'`, "x;y": "'x;y'", "`id`": "'`id`'", "-n": "-n",
	} {
		if got := shell(in); got != want {
			t.Errorf("%q became %s, want %s", in, got, want)
		}
	}
}

func TestNames(t *testing.T) {
	for want, in := range map[string][]string{"": nil, "a": {"a", "a"}, "a, b, c": {"c", "a", "b"}, "a, b, c and 2 more": {"e", "d", "c", "b", "a", "a"}} {
		if got := names(in); got != want {
			t.Errorf("%v became %q, want %q", in, got, want)
		}
	}
}
