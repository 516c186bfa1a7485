package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"
)

// grace is how long requests may take to end after SIGTERM.
const grace = 2 * time.Second

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "pod:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	switch {
	case len(args) == 1 && args[0] == "pause":
		pause(ctx)
		return nil
	case len(args) > 0 && args[0] == "serve":
		return serve(ctx, args[1:])
	}
	return errors.New("use: pod pause | pod serve [--port N] [--unready DURATION]")
}

// pause waits, and takes in the processes whose parents end.
func pause(ctx context.Context) {
	children := make(chan os.Signal, 1)
	signal.Notify(children, syscall.SIGCHLD)
	for {
		select {
		case <-ctx.Done():
			return
		case <-children:
			for {
				if pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); pid <= 0 || err != nil {
					break
				}
			}
		}
	}
}

// serve answers every path with the pod's name, and /ready by whether it is ready:
// not at first, and as PUT /ready/on and /ready/off say.
func serve(ctx context.Context, args []string) error {
	fs := flag.NewFlagSet("serve", flag.ContinueOnError)
	port := fs.Int("port", 8080, "where to listen")
	unready := fs.Duration("unready", 0, "how long /ready fails at first")
	if err := fs.Parse(args); err != nil {
		return err
	}
	name, err := os.Hostname() // a pod's is its name
	if err != nil {
		return err
	}
	var ready atomic.Bool
	time.AfterFunc(*unready, func() { ready.Store(true) })
	mux := http.NewServeMux()
	mux.HandleFunc("GET /", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, name) })
	mux.HandleFunc("GET /ready", func(w http.ResponseWriter, _ *http.Request) {
		if !ready.Load() {
			http.Error(w, "not ready yet", http.StatusServiceUnavailable)
		}
	})
	mux.HandleFunc("PUT /ready/on", func(http.ResponseWriter, *http.Request) { ready.Store(true) })
	mux.HandleFunc("PUT /ready/off", func(http.ResponseWriter, *http.Request) { ready.Store(false) })
	s := &http.Server{Addr: fmt.Sprintf(":%d", *port), Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	ended := make(chan error, 1)
	go func() { ended <- s.ListenAndServe() }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	// The listener is closed at once; there is no preStop hook here.
	over, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	return s.Shutdown(over)
}
