package scratch

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

func TestATemporaryDirectoryIsRemovedWithItsOwnerAndAfterADeadOne(t *testing.T) {
	tmp := t.TempDir()
	mine, err := onDisk(tmp)
	if err != nil {
		t.Fatal(err)
	}
	// A killed owner leaves its directory, and its lock falls with it.
	dead := filepath.Join(tmp, prefix+"dead")
	other := filepath.Join(tmp, "something-else")
	for _, dir := range []string{dead, other} {
		if err := os.MkdirAll(filepath.Join(dir, "etcd", "member"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	next, err := onDisk(tmp)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dead); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the dead owner's directory is still there: %v", err)
	}
	for _, dir := range []string{mine.path, other} {
		if _, err := os.Stat(dir); err != nil {
			t.Errorf("a directory in use or of somebody else is gone: %v", err)
		}
	}
	for _, s := range []*Dir{mine, next} {
		if err := s.Release(); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(s.path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is still there after its release", s.path)
		}
	}
}

func TestAChildFindsTheDirectoryWithWhatItInherits(t *testing.T) {
	memory, err := New()
	if err != nil {
		t.Fatal(err)
	}
	disk, err := onDisk(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []*Dir{memory, disk} {
		if err := os.WriteFile(filepath.Join(d.Path(), "from-the-parent"), []byte("hello"), 0o600); err != nil {
			t.Fatal(err)
		}
		file, path := d.Inherit()
		child := exec.Command("sh", "-c", `cat "$1/from-the-parent" && echo there > "$1/from-the-child"`, "sh", path)
		child.ExtraFiles = []*os.File{file}
		if out, err := child.CombinedOutput(); err != nil || string(out) != "hello" {
			t.Errorf("the child says %q (%v)", out, err)
		}
		if b, err := os.ReadFile(filepath.Join(d.Path(), "from-the-child")); err != nil || string(b) != "there\n" {
			t.Errorf("the child left %q (%v)", b, err)
		}
		if err := d.Release(); err != nil {
			t.Error(err)
		}
	}
}
