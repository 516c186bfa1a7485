package main

import (
	"errors"
	"io"
	"testing"
)

func TestAFlagSaysWhatItTakes(t *testing.T) {
	for want, args := range map[string][]string{
		`--traffic "abc": it takes a whole number`:                {"lab", "--traffic", "abc"},
		`--timeout "5": it takes a time such as 500ms, 10s or 2m`: {"wait", "--timeout", "5"},
	} {
		root := newRoot()
		root.SetArgs(args)
		root.SetOut(io.Discard)
		root.SetErr(io.Discard)
		if err := root.Execute(); codeOf(err) != exitUsage || err.Error() != want {
			t.Errorf("%q: %v, want %s", args, err, want)
		}
	}
}

// TestAnErrorOfWritingIsSaidOnce although a buffer says it again when it is flushed.
func TestAnErrorOfWritingIsSaidOnce(t *testing.T) {
	full := errors.New("no space left on device")
	r, w := io.Pipe()
	_ = r.CloseWithError(full)
	err := writeOut(w, "", func(w io.Writer) error {
		_, err := w.Write(make([]byte, 100_000))
		return err
	})
	if err == nil || err.Error() != full.Error() {
		t.Errorf("%v", err)
	}
}
