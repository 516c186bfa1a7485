package cluster

import (
	"context"
	"io"
	"net"
	"sync"

	"github.com/kconverge/kconverge/engine/lab/nodes"
)

// relay makes the API server, which listens on this machine's loopback, reachable
// on a node's: the listening socket is opened inside the node's namespace, the
// connections onwards are made outside.
type relay struct {
	in     net.Listener
	ctx    context.Context
	cancel context.CancelFunc
	open   sync.WaitGroup
}

func newRelay(n *nodes.Node, to string) (*relay, error) {
	r := &relay{}
	if err := n.Do(func() (err error) {
		r.in, err = net.Listen("tcp", "127.0.0.1:0")
		return err
	}); err != nil {
		return nil, err
	}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	r.open.Go(func() {
		for {
			c, err := r.in.Accept()
			if err != nil {
				return // closed
			}
			r.open.Go(func() { r.pipe(c, to) })
		}
	})
	return r, nil
}

func (r *relay) addr() string { return r.in.Addr().String() }

// pipe carries one connection until either end closes or the relay does.
func (r *relay) pipe(in net.Conn, addr string) {
	defer in.Close()
	out, err := new(net.Dialer).DialContext(r.ctx, "tcp", addr)
	if err != nil {
		return // seen by the client as a closed connection
	}
	defer out.Close()
	stop := context.AfterFunc(r.ctx, func() { _ = in.Close(); _ = out.Close() })
	defer stop()
	var both sync.WaitGroup
	both.Go(func() { _, _ = io.Copy(out, in); _ = out.Close() })
	both.Go(func() { _, _ = io.Copy(in, out); _ = in.Close() })
	both.Wait()
}

// close ends the relay and every connection through it.
func (r *relay) close() {
	r.cancel()
	_ = r.in.Close()
	r.open.Wait()
}
