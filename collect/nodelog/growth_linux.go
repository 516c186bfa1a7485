package nodelog

import (
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// openNews asks the kernel for word of an open file; nil when it gives none.
func openNews(f *os.File) *os.File {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil
	}
	// By its number, since another file may have its name by now.
	_, err = unix.InotifyAddWatch(fd, fmt.Sprintf("/proc/self/fd/%d", f.Fd()), unix.IN_MODIFY|unix.IN_ATTRIB|unix.IN_MOVE_SELF|unix.IN_DELETE_SELF)
	if err != nil {
		_ = unix.Close(fd)
		return nil
	}
	return os.NewFile(uintptr(fd), "news of "+f.Name())
}

// hear reads what the kernel has to tell, and waits for it until the deadline: that
// the file has more, that it was moved or removed.
func hear(news *os.File) (more, moved bool) {
	var buf [4096]byte
	n, err := news.Read(buf[:])
	if err != nil {
		return false, false
	}
	for b := buf[:n]; len(b) >= unix.SizeofInotifyEvent; {
		e := (*unix.InotifyEvent)(unsafe.Pointer(&b[0]))
		if e.Mask&unix.IN_MODIFY != 0 {
			more = true
		} else {
			moved = true
		}
		b = b[min(len(b), unix.SizeofInotifyEvent+int(e.Len)):]
	}
	return more, moved
}
