package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// kubeconfigFile is the file through which other terminals find the lab. The
// file is locked while the lab runs, so that a second lab takes another name
// and a file left by a killed one is simply taken over.
type kubeconfigFile struct {
	path string
	dir  string // made by us, removed when empty
	f    *os.File
}

// claimKubeconfig opens and locks the file at path, or the first free one of
// lab.kubeconfig, lab-2.kubeconfig, ... in the runtime directory.
func claimKubeconfig(path string) (*kubeconfigFile, error) {
	if path != "" {
		fi, err := os.Stat(path)
		if err == nil && !fi.Mode().IsRegular() {
			return nil, fmt.Errorf("--kubeconfig %s: not a file that could be written anew and removed: name another", path)
		}
		if err == nil && fi.Size() > 0 {
			return nil, fmt.Errorf("--kubeconfig %s: the file exists and is not the lab's to overwrite: name another", path)
		}
		k, err := lockKubeconfig(path)
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("--kubeconfig %s: another lab uses it: name another", path)
		}
		if err == nil {
			removeOnDeath(k.path)
		}
		return k, err
	}
	dir, shared := runtimeDir()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("kubeconfig: %w (set XDG_RUNTIME_DIR to a folder that can be written)", err)
	}
	if shared && !private(dir) {
		return nil, fmt.Errorf("kubeconfig: %s is not a folder that only you can write to: set XDG_RUNTIME_DIR to one", dir)
	}
	for n := 1; n <= 100; n++ {
		name := "lab.kubeconfig"
		if n > 1 {
			name = fmt.Sprintf("lab-%d.kubeconfig", n)
		}
		k, err := lockKubeconfig(filepath.Join(dir, name))
		if errors.Is(err, unix.EWOULDBLOCK) {
			continue
		}
		if err == nil {
			k.dir = dir
			removeOnDeath(k.path)
			removeOnDeath(k.dir)
		}
		return k, err
	}
	return nil, fmt.Errorf("kubeconfig: 100 labs run already in %s", dir)
}

// private tells that the folder is ours and nobody else may write to it: the
// kubeconfig holds the lab's token.
func private(dir string) bool {
	var st unix.Stat_t
	return unix.Lstat(dir, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR && int(st.Uid) == os.Getuid() && st.Mode&0o022 == 0
}

func lockKubeconfig(path string) (*kubeconfigFile, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		return nil, err
	}
	// The owner before us may have removed the file between open and lock.
	ours, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	if now, err := os.Stat(path); err != nil || !os.SameFile(ours, now) {
		f.Close()
		return lockKubeconfig(path)
	}
	return &kubeconfigFile{path: path, f: f}, nil
}

// write replaces the content.
func (k *kubeconfigFile) write(content []byte) error {
	if err := k.f.Truncate(0); err != nil {
		return err
	}
	_, err := k.f.WriteAt(content, 0)
	return err
}

// release removes the file, and the folder when it is empty.
func (k *kubeconfigFile) release() {
	_ = os.Remove(k.path)
	if k.dir != "" {
		_ = os.Remove(k.dir) // refused while other files are in it
	}
	_ = k.f.Close()
}
