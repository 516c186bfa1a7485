package noderules

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/kconverge/kconverge/collect"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// packet is what the receiver hands on: a datagram, or word of a loss.
type packet struct {
	at   time.Time
	data []byte
	// since, when set, says that the datagram came between it and at: the
	// receiver was not let run before, and knows no better.
	since time.Time
	// lost says that the kernel dropped notifications, or why else the
	// stream broke. From then until settled nothing can be trusted.
	lost string
	// settled says that the socket was read empty after a loss. The kernel
	// drops everything from the overflow until then, without a second word
	// (net/netlink/af_netlink.c: NETLINK_S_CONGESTED is cleared when the queue
	// is empty), so only a dump that begins after it covers the loss.
	settled bool
}

// exact is how well a time must be known to stand alone: lags have an error of a
// millisecond at least.
const exact = time.Millisecond

// inboxMax bounds the datagrams that wait to be decoded, in bytes. Beyond it
// the receiver waits, the kernel's buffer fills, and the loss is reported.
const inboxMax = 64 << 20

// inbox is the queue between the receiver and the decoder.
type inbox struct {
	mu    sync.Mutex
	items []packet
	bytes int
	shut  bool
	room  *sync.Cond
	ready chan struct{}
}

func newInbox() *inbox {
	b := &inbox{ready: make(chan struct{}, 1)}
	b.room = sync.NewCond(&b.mu)
	return b
}

// put appends a packet, waiting for room. It returns false when the inbox was
// shut.
func (b *inbox) put(p packet) bool {
	b.mu.Lock()
	for b.bytes > inboxMax && !b.shut {
		b.room.Wait()
	}
	if b.shut {
		b.mu.Unlock()
		return false
	}
	b.items = append(b.items, p)
	b.bytes += len(p.data)
	b.mu.Unlock()
	select {
	case b.ready <- struct{}{}:
	default:
	}
	return true
}

// take returns everything that waits.
func (b *inbox) take() []packet {
	b.mu.Lock()
	defer b.mu.Unlock()
	items := b.items
	b.items, b.bytes = nil, 0
	b.room.Signal()
	return items
}

func (b *inbox) close() {
	b.mu.Lock()
	b.shut = true
	b.room.Broadcast()
	b.mu.Unlock()
}

// notification is the room for one datagram of notifications. The kernel collects
// them up to NLMSG_GOODSIZE, at most 8 KiB (nf_tables_api.c, nft_commit_notify); a
// longer one would be told as a loss.
const notification = 64 << 10

// watch is a socket in the group of nftables notifications, and the thread that
// reads it.
type watch struct {
	conn  *netlink.Conn
	clock collect.Clock
	inbox *inbox
	// buffer is the size of the receive buffer as one asks for it: the kernel
	// doubles that for its own bookkeeping (socket(7), SO_RCVBUF).
	buffer  int
	stop    int // eventfd
	started bool
	done    chan error
}

// openWatch joins the group; from then on nothing is missed without a word.
func openWatch(o Options) (w *watch, err error) {
	conn, err := dial(o.NetNS)
	if err != nil {
		return nil, fmt.Errorf("open a netlink socket for the rules of %s: %w", o.Node, err)
	}
	defer func() {
		if err != nil {
			conn.Close()
		}
	}()
	// SO_RCVBUFFORCE where privileged, else SO_RCVBUF, which rmem_max caps.
	if err := conn.SetReadBuffer(o.ReceiveBuffer); err != nil {
		return nil, fmt.Errorf("set the receive buffer: %w", err)
	}
	buffer, err := conn.ReadBuffer()
	if err != nil {
		return nil, fmt.Errorf("read the receive buffer's size: %w", err)
	}
	if err := conn.JoinGroup(unix.NFNLGRP_NFTABLES); err != nil {
		return nil, fmt.Errorf("join the nftables notifications: %w", err)
	}
	stop, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("make an eventfd: %w", err)
	}
	return &watch{conn: conn, clock: o.Clock, inbox: newInbox(), buffer: buffer / 2, stop: stop, done: make(chan error, 1)}, nil
}

// start reads the socket on a thread of its own, so that a wake-up leads
// straight to the stamp and not through Go's scheduler.
func (w *watch) start() {
	w.started = true
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		w.done <- w.receive()
	}()
}

// close ends the receiver, waits for it and closes the socket.
func (w *watch) close() error {
	w.inbox.close()
	_, err := unix.Write(w.stop, []byte{1, 0, 0, 0, 0, 0, 0, 0})
	if w.started {
		<-w.done
	}
	return errors.Join(err, unix.Close(w.stop), w.conn.Close())
}

func (w *watch) receive() error {
	raw, err := w.conn.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	if err := raw.Control(func(fd uintptr) { failed = w.loop(int(fd)) }); err != nil {
		return err
	}
	return failed
}

func (w *watch) loop(fd int) error {
	buf := make([]byte, notification)
	wait := newWaiter(w.clock)
	defer wait.close()
	var woken wakeup    // by what is read next, if it is known
	var since time.Time // nothing that is read now came before
	lost := false
	lose := func(at time.Time, why string) bool {
		if lost {
			return true
		}
		lost = true
		return w.inbox.put(packet{at: at, lost: why})
	}
	for {
		tried := w.clock.Now()
		n, _, flags, from, err := unix.Recvmsg(fd, buf, nil, unix.MSG_DONTWAIT)
		at := w.clock.Now()
		switch {
		case errors.Is(err, unix.EAGAIN):
			if lost {
				lost = false
				if !w.inbox.put(packet{at: at, settled: true}) {
					return nil
				}
			}
			fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}, {Fd: int32(w.stop), Events: unix.POLLIN}}
			if woken, err = wait.wait(tried, fds); err != nil {
				return fmt.Errorf("wait for notifications: %w", err)
			}
			since = time.Time{}
			if fds[1].Revents != 0 {
				return nil
			}
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.ENOBUFS):
			if !lose(at, "the kernel's receive buffer overflowed") {
				return nil
			}
		case err != nil:
			return fmt.Errorf("receive notifications: %w", err)
		case flags&unix.MSG_TRUNC != 0:
			if !lose(at, fmt.Sprintf("a notification was longer than %d bytes", len(buf))) {
				return nil
			}
		default:
			if sa, ok := from.(*unix.SockaddrNetlink); !ok || sa.Pid != 0 || lost {
				continue // not from the kernel, or worthless after a loss
			}
			if woken.known {
				since, at = woken.bounds(at)
				woken.known = false
			}
			p := packet{at: at, data: append([]byte(nil), buf[:n]...)}
			if !since.IsZero() && at.Sub(since) > exact {
				p.since = since
			}
			if !w.inbox.put(p) {
				return nil
			}
		}
	}
}
