package scratch

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Dir is a directory of this process that leaves nothing behind.
type Dir struct {
	path    string
	held    *os.File // the file system in memory, or the lock
	release func() error
}

// New returns a directory in memory where the kernel lets this process make a
// file system of its own, else a private one in the temporary directory, of which
// New also removes what killed processes have left. The error names the way out.
func New() (*Dir, error) {
	d, err := inMemory()
	if err == nil {
		return d, nil
	}
	t, terr := onDisk(os.TempDir())
	if terr != nil {
		return nil, errors.Join(
			fmt.Errorf("no directory for the lab's storage: set TMPDIR to a writable directory: %w", terr),
			fmt.Errorf("in memory: %w", err))
	}
	return t, nil
}

// Path is where this process finds the directory. Nobody else may: a process of
// ours is given it with Inherit.
func (d *Dir) Path() string { return d.path }

// FirstInherited is the descriptor of the first file of exec.Cmd.ExtraFiles.
const FirstInherited = 3

// Inherit gives what a child needs: the file is to be its FirstInherited
// descriptor, and path is where it then finds the directory. A directory in
// memory is there until the last of them has ended; one on disk is not taken for
// a dead owner's until then.
func (d *Dir) Inherit() (file *os.File, path string) {
	if d.path == ownPath(d.held) {
		return d.held, fmt.Sprintf("/proc/self/fd/%d", FirstInherited)
	}
	return d.held, d.path
}

// ownPath is the path of a file system that only its descriptor leads to.
func ownPath(f *os.File) string { return fmt.Sprintf("/proc/self/fd/%d", f.Fd()) }

// Release removes the directory with all that is in it. It is called once.
func (d *Dir) Release() error { return d.release() }

const prefix = "kconverge-lab-"

// attempts bounds the tries against another start that takes a directory for a
// dead owner's just before its owner has locked it.
const attempts = 5

var (
	errTaken  = errors.New("another start removed the directory before it was locked")
	errLocked = errors.New("the directory is locked by its owner")
)

// onDisk makes a directory in dir and locks it. The kernel drops the lock when
// this process ends, however it ends; directories without one belong to nobody
// and are removed first.
func onDisk(dir string) (d *Dir, err error) {
	if err := removeStale(dir); err != nil {
		return nil, err
	}
	for range attempts {
		if d, err = locked(dir); !errors.Is(err, errTaken) {
			return d, err
		}
	}
	return nil, err
}

func locked(dir string) (*Dir, error) {
	path, err := os.MkdirTemp(dir, prefix)
	if err != nil {
		return nil, err
	}
	lock, err := lockDir(path)
	if err != nil {
		if _, gone := os.Stat(path); errors.Is(gone, os.ErrNotExist) || errors.Is(err, errLocked) {
			return nil, errTaken
		}
		return nil, errors.Join(err, os.RemoveAll(path))
	}
	if _, err := os.Stat(path); err != nil {
		return nil, errors.Join(errTaken, lock.Close())
	}
	return &Dir{path: path, held: lock, release: func() error {
		// The directory goes first: unlocked, another start would remove it too.
		return errors.Join(os.RemoveAll(path), lock.Close())
	}}, nil
}

// removeStale leaves directories alone that are locked or another user's.
func removeStale(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !e.IsDir() || !strings.HasPrefix(e.Name(), prefix) {
			continue
		}
		path := filepath.Join(dir, e.Name())
		lock, err := lockDir(path)
		if err != nil {
			continue
		}
		if err := errors.Join(os.RemoveAll(path), lock.Close()); err != nil {
			return fmt.Errorf("removing what an earlier lab left in %s: %w", path, err)
		}
	}
	return nil
}
