package lab_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"time"
)

// answer asks over an open connection who is there.
func answer(conn net.Conn) string {
	if err := conn.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return err.Error()
	}
	if _, err := fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: web\r\nConnection: close\r\n\r\n"); err != nil {
		return err.Error()
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return err.Error()
	}
	defer resp.Body.Close()
	return resp.Header.Get("X-Pod-UID")
}
