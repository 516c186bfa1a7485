package controlplane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kconverge/kconverge/engine/lab/process"
)

const (
	// askEvery is how often a program that starts is asked whether it is ready,
	// and askTimeout how long it may take to answer.
	askEvery   = 20 * time.Millisecond
	askTimeout = 5 * time.Second
)

// await asks until the answer is nil, or the program has ended, or ctx has.
func await(ctx context.Context, p *process.Process, what string, ask func(context.Context) error) error {
	var last error
	err := wait.PollUntilContextCancel(ctx, askEvery, true, func(ctx context.Context) (bool, error) {
		select {
		case <-p.Done():
			return false, p.Ended()
		default:
		}
		ctx, cancel := context.WithTimeout(ctx, askTimeout)
		defer cancel()
		last = ask(ctx)
		return last == nil, nil
	})
	switch {
	case err == nil:
		return nil
	case wait.Interrupted(err) || ctx.Err() != nil:
		return fmt.Errorf("waiting for %s of %s: %w; its last lines: %s", what, p.Name(), errors.Join(ctx.Err(), last), strings.Join(p.Last(), " | "))
	}
	return err
}

// get asks for a page that is to be answered with 200.
func get(ctx context.Context, client *http.Client, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<10)) // for the error only
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", resp.Status, strings.Join(strings.Fields(string(body)), " "))
	}
	return nil
}

// etcdReady asks etcd through its socket in the directory.
func etcdReady(dir string) func(context.Context) error {
	transport := &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(dir, etcdSocket))
		},
	}
	return func(ctx context.Context) error {
		return get(ctx, &http.Client{Transport: transport}, "http://etcd/readyz")
	}
}

// healthy asks a program for a page as the administrator.
func healthy(admin *rest.Config, port, page string) (func(context.Context) error, error) {
	c := rest.CopyConfig(admin)
	c.Host = "https://" + hostPort(port)
	client, err := rest.HTTPClientFor(c)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) error { return get(ctx, client, c.Host+page) }, nil
}

// podsAllowed asks whether the first pod would be let in: its service account has
// to be there, which kube-controller-manager makes.
func podsAllowed(admin *rest.Config) (func(context.Context) error, error) {
	client, err := kubernetes.NewForConfig(admin)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		_, err := client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
		return err
	}, nil
}
