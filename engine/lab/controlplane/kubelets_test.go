package controlplane

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"
)

// What the API server asks of a node goes to the node where one can be dialled, and
// is refused with the reason everywhere else.
func TestTheProxyToTheNodesConnectsWhereItCan(t *testing.T) {
	node, kubelet := net.Pipe()
	defer kubelet.Close()
	dir := t.TempDir()
	k, err := serveKubelets(dir, Options{NoKubelets: "nobody is there", DialNode: func(_ context.Context, addr string) (net.Conn, error) {
		switch addr {
		case "real:10250":
			return node, nil
		case "down:10250":
			return nil, errors.New("no route\nto host")
		}
		return nil, ErrNoKubelet
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := k.close(); err != nil {
			t.Error(err)
		}
	}()
	ask := func(addr string) (c net.Conn, in *bufio.Reader, status string) {
		c, err := net.Dial("unix", filepath.Join(dir, kubeletsSocket))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		if _, err := io.WriteString(c, "CONNECT "+addr+" HTTP/1.1\r\nHost: "+addr+"\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		in = bufio.NewReader(c)
		if status, err = in.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		return c, in, strings.TrimSpace(status)
	}
	for addr, want := range map[string]string{"other:10250": "HTTP/1.1 501 nobody is there", "down:10250": "HTTP/1.1 501 no route to host"} {
		if _, _, got := ask(addr); got != want {
			t.Errorf("%s: %q, want %q", addr, got, want)
		}
	}
	c, in, status := ask("real:10250")
	if _, err := in.ReadString('\n'); err != nil || !strings.HasPrefix(status, "HTTP/1.1 200 ") {
		t.Fatalf("connected with %q (%v)", status, err)
	}
	go func() { _, _ = io.Copy(kubelet, kubelet) }()
	if _, err := io.WriteString(c, "to and fro\n"); err != nil {
		t.Fatal(err)
	}
	if back, err := in.ReadString('\n'); err != nil || back != "to and fro\n" {
		t.Errorf("back came %q (%v)", back, err)
	}
}
