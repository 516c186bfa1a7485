package rulesync

import (
	"encoding/binary"
	"errors"
	"fmt"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/kconverge/kconverge/collect/netns"
)

const (
	// wantSend is the send buffer asked for: a transaction must fit into it.
	// The kernel's own limit (net.core.wmem_max) holds in a user namespace.
	wantSend = 64 << 20
	wantRecv = 4 << 20
	// replyWithin bounds how long the kernel's answer is waited for; it is
	// there when the request's system call returns.
	replyWithin = 10 * time.Second
)

// socket is a netlink socket to nf_tables of one network namespace.
type socket struct {
	fd  int
	buf []byte
	// limit is the largest message that can be sent, in bytes.
	limit int
	seq   uint32
}

// dial opens a socket inside the namespace.
func dial(fd int) (s *socket, err error) {
	err = netns.Do(fd, func() (err error) {
		s, err = openSocket()
		return err
	})
	return s, err
}

func openSocket() (_ *socket, err error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_NETFILTER)
	if err != nil {
		return nil, fmt.Errorf("open a netfilter socket: %w", err)
	}
	s := &socket{fd: fd, buf: make([]byte, 256<<10)}
	defer func() {
		if err != nil {
			_ = unix.Close(fd)
		}
	}()
	if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return nil, fmt.Errorf("bind a netfilter socket: %w", err)
	}
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, wantSend) != nil {
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, wantSend); err != nil {
			return nil, fmt.Errorf("set the send buffer: %w", err)
		}
	}
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, wantRecv) != nil {
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, wantRecv); err != nil {
			return nil, fmt.Errorf("set the receive buffer: %w", err)
		}
	}
	got, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF)
	if err != nil {
		return nil, fmt.Errorf("read the send buffer: %w", err)
	}
	// netlink_sendmsg refuses what is longer than the buffer less 32.
	s.limit = got - 32
	tv := unix.NsecToTimeval(replyWithin.Nanoseconds())
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &tv); err != nil {
		return nil, fmt.Errorf("set the receive timeout: %w", err)
	}
	// Errors then carry the kernel's words and not the request.
	for _, opt := range []int{unix.NETLINK_EXT_ACK, unix.NETLINK_CAP_ACK} {
		if err := unix.SetsockoptInt(fd, unix.SOL_NETLINK, opt, 1); err != nil {
			return nil, fmt.Errorf("set netlink option %d: %w", opt, err)
		}
	}
	return s, nil
}

func (s *socket) close() error { return unix.Close(s.fd) }

func (s *socket) send(b []byte) error {
	for {
		err := unix.Sendto(s.fd, b, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK})
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// recv reads one datagram of messages.
func (s *socket) recv(flags int) ([]message, error) {
	for {
		n, _, err := unix.Recvfrom(s.fd, s.buf, flags)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return nil, err
		}
		return parse(s.buf[:n]), nil
	}
}

// message is one received message; data aliases the socket's buffer.
type message struct {
	typ, flags uint16
	seq        uint32
	data       []byte
}

func parse(b []byte) []message {
	var out []message
	for len(b) >= unix.NLMSG_HDRLEN {
		n := int(binary.NativeEndian.Uint32(b))
		if n < unix.NLMSG_HDRLEN || n > len(b) {
			return out
		}
		out = append(out, message{
			typ:   binary.NativeEndian.Uint16(b[4:]),
			flags: binary.NativeEndian.Uint16(b[6:]),
			seq:   binary.NativeEndian.Uint32(b[8:]),
			data:  b[unix.NLMSG_HDRLEN:n],
		})
		b = b[min((n+3)&^3, len(b)):]
	}
	return out
}

// fault is the error of an NLMSG_ERROR message, nil for an acknowledgement.
func (m message) fault() error {
	if len(m.data) < 4 {
		return errors.New("short netlink error")
	}
	code := int32(binary.NativeEndian.Uint32(m.data))
	if code == 0 {
		return nil
	}
	err := error(syscall.Errno(-code))
	// struct nlmsgerr: the error, the request's header, attributes.
	if text := extAck(m.data[min(len(m.data), 4+unix.NLMSG_HDRLEN):]); text != "" {
		err = fmt.Errorf("%w: %s", err, text)
	}
	return err
}

func extAck(b []byte) string {
	for len(b) >= 4 {
		n, typ := int(binary.NativeEndian.Uint16(b)), binary.NativeEndian.Uint16(b[2:])
		if n < 4 || n > len(b) {
			return ""
		}
		if typ == unix.NLMSGERR_ATTR_MSG && n > 5 {
			return string(b[4 : n-1])
		}
		b = b[min((n+3)&^3, len(b)):]
	}
	return ""
}

// errRaced: somebody else committed between reading and writing.
var errRaced = errors.New("another program keeps changing the rules")

// commit sends messages (without begin and end) as one transaction on top of
// generation gen, and returns the generation it made, which is gen's successor.
// errRaced means that gen was not current any more and nothing was done.
func (s *socket) commit(family byte, messages []byte, gen uint32) (uint32, error) {
	frame := &batch{}
	frame.message(unix.NFNL_MSG_BATCH_BEGIN, 0)
	// struct nfgenmsg.res_id names the subsystem.
	binary.BigEndian.PutUint16(frame.buf[len(frame.buf)-2:], unix.NFNL_SUBSYS_NFTABLES)
	frame.u32(nfnlBatchGenID, gen)
	frame.end()
	frame.buf = append(frame.buf, messages...)
	frame.message(unix.NFNL_MSG_BATCH_END, 0)
	binary.BigEndian.PutUint16(frame.buf[len(frame.buf)-2:], unix.NFNL_SUBSYS_NFTABLES)
	frame.end()
	if err := s.send(frame.buf); err != nil {
		return 0, fmt.Errorf("send a transaction of %d bytes: %w", len(frame.buf), err)
	}
	// The kernel has worked it off when send returns; only errors are
	// answered, and they are in the buffer by now.
	var errs []error
	raced := false
	for {
		ms, err := s.recv(unix.MSG_DONTWAIT)
		if errors.Is(err, unix.EAGAIN) {
			break
		}
		if err != nil {
			return 0, fmt.Errorf("read the outcome of a transaction: %w", err)
		}
		for _, m := range ms {
			if m.typ != unix.NLMSG_ERROR {
				continue
			}
			err := m.fault()
			raced = raced || errors.Is(err, errRestart)
			if err != nil && len(errs) < 3 {
				errs = append(errs, fmt.Errorf("message %d: %w", m.seq, err))
			}
		}
	}
	if raced {
		return 0, errRaced
	}
	if len(errs) > 0 {
		return 0, fmt.Errorf("the kernel refused the rules: %w", errors.Join(errs...))
	}
	gen++
	if gen == 0 { // The kernel skips it.
		gen = 1
	}
	return gen, nil
}

// errRestart is ERESTART, which the kernel answers for an old generation.
var errRestart = syscall.Errno(unix.ERESTART)

// request sends one request and calls each for each answer.
func (s *socket) request(family byte, typ, flags uint16, attrs func(*batch), each func(message) error) error {
	b := &batch{family: family, seq: s.seq}
	b.nft(typ, flags)
	if attrs != nil {
		attrs(b)
	}
	b.end()
	s.seq = b.seq
	if err := s.send(b.buf); err != nil {
		return err
	}
	dump := flags&unix.NLM_F_DUMP != 0
	var failed error
	for {
		ms, err := s.recv(0)
		if err != nil {
			return err
		}
		for _, m := range ms {
			switch {
			case m.seq != s.seq:
			case m.typ == unix.NLMSG_ERROR:
				return errors.Join(failed, m.fault())
			case m.typ == unix.NLMSG_DONE:
				return failed
			default:
				if failed == nil {
					failed = each(m)
				}
				if !dump {
					return failed
				}
			}
		}
	}
}
