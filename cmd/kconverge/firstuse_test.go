package main

import (
	"path/filepath"
	"testing"
)

func TestTheFirstUseIsRemembered(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	used := firstUse(state)
	if used == nil || firstUse(state) == nil {
		t.Fatal("somebody new is taken for somebody who knows the screen")
	}
	used()
	if firstUse(state) != nil {
		t.Error("the first use is forgotten")
	}
}
