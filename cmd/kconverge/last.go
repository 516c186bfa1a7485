package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/collect/recording"
)

// keepLast starts to keep the last minutes of a session in the state directory, or
// returns nil: for a replay, where the configuration says so, and where the folder
// cannot be written, which is said.
func (f *outputFlags) keepLast(session collect.Session, replay bool) *recording.Ring {
	if f.given == nil || f.forget || replay {
		return nil
	}
	started := session.Started
	if started.IsZero() {
		started = time.Now()
	}
	ring, err := recording.NewRing(stateDir(), started)
	if err != nil {
		fmt.Fprintln(os.Stderr, "kconverge:", oneLine(err))
		return nil
	}
	return ring
}

// saver saves what a ring has kept; a path may begin with ~/, as in a shell.
func saver(ring *recording.Ring) func(path string) error {
	return func(path string) error {
		path, err := homePath(path)
		if err != nil {
			return err
		}
		return ring.Save(path, recordingOptions())
	}
}

// lastSession opens the last session that was kept, and says how to let go of it.
func lastSession() (*recording.File, func(), error) {
	dir, err := os.MkdirTemp("", "kconverge-last-")
	if err != nil {
		return nil, nil, err
	}
	remove := func() { _ = os.RemoveAll(dir) }
	path := filepath.Join(dir, "last")
	removeOnDeath(path)
	removeOnDeath(dir)
	if err := recording.SaveLast(stateDir(), path, recordingOptions()); err != nil {
		remove()
		if errors.Is(err, recording.ErrNoSession) {
			return nil, nil, fmt.Errorf("%w: every lab and watch is kept from now on", err)
		}
		return nil, nil, err
	}
	file, err := recording.Open(path)
	if err != nil {
		remove()
		return nil, nil, err
	}
	return file, func() { _ = file.Close(); remove() }, nil
}
