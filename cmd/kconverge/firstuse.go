package main

import (
	"os"
	"path/filepath"
)

// firstUse gives what to call when somebody who never used the screen presses a key;
// nil for those who did. It is remembered by an empty file in the state directory;
// where that cannot be written, everybody is taken for somebody who knows the screen.
func firstUse(state string) func() {
	path := filepath.Join(state, "used")
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		return nil
	}
	if err := os.MkdirAll(state, 0o700); err != nil {
		return nil
	}
	return func() {
		if f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600); err == nil {
			_ = f.Close()
		}
	}
}
