package controlplane

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// loopback is the only address that anything listens on.
const loopback = "127.0.0.1"

// PortError says that the API server cannot have the port that was asked for.
type PortError struct {
	Port int
	Err  error
}

// Error names the address and the way out.
func (e *PortError) Error() string {
	at := net.JoinHostPort(loopback, strconv.Itoa(e.Port))
	if errors.Is(e.Err, syscall.EADDRINUSE) {
		return fmt.Sprintf("address %s is already in use: choose another port, or --port 0 for any free one", at)
	}
	return fmt.Sprintf("cannot listen on %s: %v: choose another port, or --port 0 for any free one", at, e.Err)
}

// Unwrap gives the cause.
func (e *PortError) Unwrap() error { return e.Err }

// port is a TCP port of the loopback address that is kept for a program of this
// user: a socket that is bound to it and does not listen. The program shares it
// (SO_REUSEPORT, --permit-port-sharing), and whoever connects reaches the program,
// the only one that listens. So nobody can take the port between its choice and
// the program's start.
type port struct {
	f      *os.File
	number string
}

// keepPort keeps the port of that number, any free one for 0.
func keepPort(number int) (*port, error) {
	if number != 0 {
		// Sharing would go unnoticed with another program of this user that shares.
		ln, err := net.Listen("tcp4", net.JoinHostPort(loopback, strconv.Itoa(number)))
		if err != nil {
			return nil, &PortError{Port: number, Err: err}
		}
		if err := ln.Close(); err != nil {
			return nil, &PortError{Port: number, Err: err}
		}
	}
	syscall.ForkLock.RLock()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err == nil {
		unix.CloseOnExec(fd)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, fmt.Errorf("keep a port: %w", err)
	}
	p := &port{f: os.NewFile(uintptr(fd), "port")}
	bound, err := bind(fd, number)
	if err != nil {
		_ = p.f.Close()
		return nil, &PortError{Port: number, Err: err}
	}
	p.number = strconv.Itoa(bound)
	return p, nil
}

func bind(fd, number int) (int, error) {
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1); err != nil {
		return 0, err
	}
	if err := unix.Bind(fd, &unix.SockaddrInet4{Port: number, Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return 0, err
	}
	name, err := unix.Getsockname(fd)
	if err != nil {
		return 0, err
	}
	in, ok := name.(*unix.SockaddrInet4)
	if !ok {
		return 0, fmt.Errorf("bound to %T", name)
	}
	return in.Port, nil
}

func (p *port) release() error { return p.f.Close() }
