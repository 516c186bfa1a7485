package main

import "testing"

func TestTheCommandIsFoundBehindFlags(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "kconverge"},
		{[]string{"lab", "--nodes", "3"}, "lab"},
		{[]string{"-n", "lab", "watch"}, "watch"},
		{[]string{"--namespace", "lab"}, "kconverge"},
		{[]string{"--context=lab", "run", "--", "lab"}, "run"},
		{[]string{"svc/lab"}, "kconverge"},
	} {
		if got := commandOf(c.args); got != c.want {
			t.Errorf("%q is %q, want %q", c.args, got, c.want)
		}
	}
}
