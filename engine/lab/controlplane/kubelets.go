package controlplane

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// dialNodeLimit bounds how long a node may take to accept a connection.
const dialNodeLimit = 10 * time.Second

// kubelets stands where the API server looks for the nodes: a proxy (HTTP CONNECT)
// that connects to those that can be dialled, and says why of all others.
type kubelets struct {
	server *http.Server
	ended  chan error
	dial   func(ctx context.Context, addr string) (net.Conn, error)
	why    string

	// What was hijacked is no longer the server's: it is closed with ctx.
	ctx    context.Context
	cancel context.CancelFunc
}

// serveKubelets listens in the directory.
func serveKubelets(dir string, o Options) (*kubelets, error) {
	ln, err := net.Listen("unix", filepath.Join(dir, kubeletsSocket))
	if err != nil {
		return nil, err
	}
	k := &kubelets{ended: make(chan error, 1), dial: o.DialNode, why: o.NoKubelets}
	k.ctx, k.cancel = context.WithCancel(context.Background())
	k.server = &http.Server{ReadHeaderTimeout: 10 * time.Second, Handler: k}
	go func() { k.ended <- k.server.Serve(ln) }()
	return k, nil
}

// ServeHTTP implements http.Handler.
func (k *kubelets) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	node, why := k.connect(r)
	h, ok := w.(http.Hijacker)
	if !ok {
		http.Error(w, why, http.StatusNotImplemented)
		return
	}
	c, buffered, err := h.Hijack()
	if err != nil {
		if node != nil {
			_ = node.Close()
		}
		http.Error(w, why, http.StatusNotImplemented)
		return
	}
	if node == nil {
		// The API server quotes the status line only, so the reason is there.
		_, _ = c.Write([]byte("HTTP/1.1 501 " + why + "\r\nConnection: close\r\n\r\n")) // it may be gone
		_ = c.Close()
		return
	}
	k.pipe(c, buffered.Reader, node)
}

// connect gives a connection to the node that the API server wants, or why not.
func (k *kubelets) connect(r *http.Request) (net.Conn, string) {
	if k.dial == nil || r.Method != http.MethodConnect {
		return nil, k.why
	}
	ctx, cancel := context.WithTimeout(k.ctx, dialNodeLimit)
	defer cancel()
	c, err := k.dial(ctx, r.Host)
	switch {
	case errors.Is(err, ErrNoKubelet):
		return nil, k.why
	case err != nil:
		// Part of a status line.
		return nil, strings.Join(strings.Fields(err.Error()), " ")
	}
	return c, ""
}

// pipe carries one connection until both directions have ended, or k has.
func (k *kubelets) pipe(c net.Conn, from *bufio.Reader, node net.Conn) {
	defer c.Close()
	defer node.Close()
	stop := context.AfterFunc(k.ctx, func() { _ = c.Close(); _ = node.Close() })
	defer stop()
	if _, err := c.Write([]byte("HTTP/1.1 200 Connection established\r\n\r\n")); err != nil {
		return // the API server has gone
	}
	var both sync.WaitGroup
	both.Go(func() { _, _ = io.Copy(node, from); _ = node.Close() })
	both.Go(func() { _, _ = io.Copy(c, node); _ = c.Close() })
	both.Wait()
}

func (k *kubelets) close() error {
	err := k.server.Close()
	if e := <-k.ended; !errors.Is(e, http.ErrServerClosed) {
		err = errors.Join(err, e)
	}
	k.cancel()
	return err
}
