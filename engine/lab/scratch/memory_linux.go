package scratch

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/kconverge/kconverge/collect/netns"
)

// memorySize bounds the memory that storage may take. Pages are only taken
// when written.
const memorySize = "1g"

// inMemory makes a tmpfs that is mounted nowhere: only this process's
// descriptor, and those of children that inherit it, reach it, so it is gone with
// them even after SIGKILL.
//
// That takes CAP_SYS_ADMIN in the user namespace that owns the thread's mount
// namespace. A process in a user namespace of its own, as the lab of an
// ordinary user is, has it in a new mount namespace; one thread visits one.
func inMemory() (*Dir, error) {
	fd, err := detachedTmpfs()
	if errors.Is(err, unix.EPERM) {
		fd, err = detachedTmpfsElsewhere()
	}
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), "lab storage")
	return &Dir{path: ownPath(f), held: f, release: f.Close}, nil
}

func detachedTmpfs() (int, error) {
	fs, err := unix.Fsopen("tmpfs", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, fmt.Errorf("fsopen tmpfs: %w", err)
	}
	defer unix.Close(fs)
	for _, kv := range [][2]string{{"mode", "0700"}, {"size", memorySize}} {
		if err := unix.FsconfigSetString(fs, kv[0], kv[1]); err != nil {
			return -1, fmt.Errorf("fsconfig %s: %w", kv[0], err)
		}
	}
	if err := unix.FsconfigCreate(fs); err != nil {
		return -1, fmt.Errorf("fsconfig create: %w", err)
	}
	fd, err := unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV|unix.MOUNT_ATTR_NOEXEC)
	if err != nil {
		return -1, fmt.Errorf("fsmount: %w", err)
	}
	return fd, nil
}

// detachedTmpfsElsewhere is detachedTmpfs on a thread that has left the mount
// namespace. The file system does not need the namespace any more when the
// thread has ended.
func detachedTmpfsElsewhere() (fd int, err error) {
	err = netns.OnThread(func() (err error) {
		if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
			return fmt.Errorf("unshare the mount namespace: %w", err)
		}
		fd, err = detachedTmpfs()
		return err
	})
	return fd, err
}
