package nodes

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/kconverge/kconverge/collect"
)

const (
	// silentAfter is how long a client may stay silent before it is answered
	// all the same: a plain TCP client that only reads gets the answer too.
	silentAfter = 200 * time.Millisecond
	// answerWithin bounds one connection.
	answerWithin = 5 * time.Second
	// maxRequest is how much of a request is read.
	maxRequest = 64 << 10
)

// answer serves one connection of a pod: whatever is asked, it says who it is.
func answer(c net.Conn, uid, name string) {
	defer func() { _ = c.Close() }()
	start := time.Now()
	readRequest(c)
	uid, name = collect.Plain(uid), collect.Plain(name)
	body := fmt.Sprintf("%s %s\n", uid, name)
	if c.SetDeadline(start.Add(answerWithin)) != nil {
		return
	}
	if _, err := fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: %d\r\nX-Pod-UID: %s\r\nConnection: close\r\n\r\n%s", len(body), uid, body); err != nil {
		return
	}
	// Closing with unread bytes sends a reset, which can take the answer with
	// it: end our side first and let the client end its own.
	if t, ok := c.(*net.TCPConn); ok && t.CloseWrite() == nil {
		_, _ = io.Copy(io.Discard, io.LimitReader(c, maxRequest))
	}
}

// readRequest reads up to the end of an HTTP header or until the client falls
// silent.
func readRequest(c net.Conn) {
	if c.SetReadDeadline(time.Now().Add(silentAfter)) != nil {
		return
	}
	var got []byte
	buf := make([]byte, 4096)
	for len(got) < maxRequest {
		n, err := c.Read(buf)
		got = append(got, buf[:n]...)
		if err != nil || bytes.Contains(got, []byte("\r\n\r\n")) || bytes.Contains(got, []byte("\n\n")) {
			return
		}
	}
}
