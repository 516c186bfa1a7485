package apiserver

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"
)

// AddressError says that the server could not listen on Addr.
type AddressError struct {
	Addr string
	Err  error
}

// Error names the address and the way out.
func (e *AddressError) Error() string {
	if errors.Is(e.Err, syscall.EADDRINUSE) {
		return fmt.Sprintf("address %s is already in use: choose another port, or --port 0 for any free one", e.Addr)
	}
	return fmt.Sprintf("cannot listen on %s: %v: choose another address, or --port 0 for any free port", e.Addr, e.Err)
}

// Unwrap gives the cause, so that errors.Is(err, syscall.EADDRINUSE) works.
func (e *AddressError) Unwrap() error { return e.Err }

// listener knows its connections, so that a stopping server need not wait for
// clients that keep theirs open: HTTP/2 alone would take a second for it.
type listener struct {
	net.Listener
	mu    sync.Mutex
	conns map[*conn]struct{}
}

func listen(addr string) (*listener, error) {
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, &AddressError{Addr: addr, Err: err}
	}
	return &listener{Listener: ln, conns: map[*conn]struct{}{}}, nil
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	known := &conn{Conn: c, of: l}
	l.conns[known] = struct{}{}
	return known, nil
}

// address is where clients on this machine reach the listener: a host that the
// certificate names, and the port.
func (l *listener) address() (host, port string, err error) {
	host, port, err = net.SplitHostPort(l.Addr().String())
	if err != nil {
		return "", "", fmt.Errorf("reading the address the lab's API server listens on: %w", err)
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return host, port, nil
}

// closeConnections ends what clients still hold.
func (l *listener) closeConnections() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.conns {
		_ = c.Conn.Close() // the other end may have been faster
	}
	clear(l.conns)
}

type conn struct {
	net.Conn
	of *listener
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.of.mu.Lock()
	delete(c.of.conns, c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}
