package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/kconverge/kconverge/engine/cluster"
)

// dirPrefix begins the name of a cluster's temporary folder.
const dirPrefix = "kconverge-cluster-"

// record is what a running cluster says of itself in a file that it keeps locked for
// as long as it lives, however it ends.
type record struct {
	PID        int       `json:"pid"`
	Dir        string    `json:"dir"`
	Kubeconfig string    `json:"kubeconfig"`
	Since      time.Time `json:"since"`
}

// runningError says that there is a cluster already.
type runningError struct{ record }

// Error names the cluster and the way out.
func (e *runningError) Error() string {
	return fmt.Sprintf("a cluster runs already: process %d, since %s.\nUse it (export KUBECONFIG=%s), or end it: make cluster-down",
		e.PID, e.Since.Local().Format("2006-01-02 15:04:05"), e.Kubeconfig)
}

// place is the locked file.
type place struct {
	file *os.File
	path string
}

// hold locks the file; a *runningError says who has it. A record that is in it all
// the same is of a cluster that was killed: what that left is removed, and told.
func hold(path string) (_ *place, left string, err error) {
	f, err := open(path, os.O_CREATE)
	if err != nil {
		return nil, "", err
	}
	defer func() {
		if err != nil {
			_ = f.Close()
		}
	}()
	ok, err := tryLock(f)
	if err != nil {
		return nil, "", err
	}
	if ok && !named(f, path) { // another cluster has just removed it
		_ = f.Close()
		return hold(path)
	}
	r, readErr := read(f)
	if !ok {
		if readErr != nil {
			return nil, "", fmt.Errorf("a cluster runs already, and %s does not tell which (%w): wait a second, then look again", path, readErr)
		}
		return nil, "", &runningError{r}
	}
	if readErr == nil {
		if left, err = r.clean(); err != nil {
			return nil, "", err
		}
	}
	return &place{f, path}, left, f.Truncate(0)
}

// open opens the file without following a link.
func open(path string, flags int) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|noFollow|flags, 0o600)
	if err != nil {
		return nil, fmt.Errorf("the file that tells of a running cluster: %w", err)
	}
	return f, nil
}

// say writes the record.
func (p *place) say(r record) error {
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	_, err = p.file.WriteAt(b, 0)
	return err
}

// release removes the file and gives it up.
func (p *place) release() error {
	err := os.Remove(p.path)
	if errors.Is(err, os.ErrNotExist) {
		err = nil // somebody was quicker
	}
	return errors.Join(err, p.file.Close())
}

// named tells that the file is still the one of that name.
func named(f *os.File, path string) bool {
	have, err := f.Stat()
	at, statErr := os.Lstat(path)
	return err == nil && statErr == nil && os.SameFile(have, at)
}

func read(f *os.File) (r record, err error) {
	b, err := io.ReadAll(io.NewSectionReader(f, 0, 1<<16))
	if err != nil {
		return r, err
	}
	return r, json.Unmarshal(b, &r)
}

// clean removes the folder of a cluster that does not run any more, if it is there,
// and the cgroups of its real node. Its processes and namespaces went with it.
func (r *record) clean() (removed string, err error) {
	cluster.RemoveStale()
	if !strings.HasPrefix(filepath.Base(r.Dir), dirPrefix) {
		return "", nil
	}
	if _, err := os.Lstat(r.Dir); errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	return r.Dir, os.RemoveAll(r.Dir)
}
