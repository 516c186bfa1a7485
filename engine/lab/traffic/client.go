package traffic

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"syscall"
	"time"

	"github.com/kconverge/kconverge/collect"
)

// answerWithin is how long a connection may take, from the first packet to the answer.
// A lost first packet is sent again after a second, and after two more.
const answerWithin = 5 * time.Second

// Node is a node to open connections from.
type Node interface {
	Name() string
	// Addresses are the node's own, where its NodePorts are.
	Addresses() []netip.Addr
	// DialFrom connects over TCP from inside the node's network namespace, from a
	// source port; the error is EADDRINUSE or EADDRNOTAVAIL where that is taken.
	DialFrom(ctx context.Context, address string, port uint16) (net.Conn, error)
}

// ask opens a connection, asks who is there and returns the UID of the pod that
// answered.
func (t *Traffic) ask(ctx context.Context, n Node, address string) (uid string, err error) {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	var conn net.Conn
	for range portTries {
		conn, err = n.DialFrom(ctx, address, t.ports.next(n.Name(), address))
		if !errors.Is(err, syscall.EADDRINUSE) && !errors.Is(err, syscall.EADDRNOTAVAIL) {
			break
		}
	}
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }()
	deadline, _ := ctx.Deadline()
	if err := conn.SetDeadline(deadline); err != nil {
		return "", err
	}
	if _, err := fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: traffic\r\nConnection: close\r\n\r\n"); err != nil {
		return "", err
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	return resp.Header.Get("X-Pod-UID"), nil
}

// result names what went wrong.
func result(err error) string {
	var timeout net.Error
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return collect.ConnectionRefused
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return collect.ConnectionTimedOut
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return collect.ConnectionUnreachable
	}
	return collect.ConnectionReset
}
