package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"

	"github.com/kconverge/kconverge/engine/lab/process"
	"github.com/kconverge/kconverge/engine/lab/scratch"
)

const (
	// startTimeout is far beyond the few seconds that a start takes, for machines
	// that are busy with something else.
	startTimeout = 2 * time.Minute
	// stopTimeout is how long each program has to stop by itself. What they hold
	// is thrown away, so nothing is lost when they are killed.
	stopTimeout = 2 * time.Second
)

// ControlPlane is a running one. Its methods are safe for concurrent use.
type ControlPlane struct {
	o     Options
	dir   *scratch.Dir
	admin *rest.Config
	ports []*port
	nodes *kubelets

	mu      sync.Mutex
	running []*process.Process // in the order of their start

	ended   chan struct{} // closed when a program has ended by itself
	stopped sync.Once
	failure error // why, readable once ended is closed
	stop    chan struct{}
	watch   sync.WaitGroup
}

// Start starts the programs one after the other, each when the one before it is
// ready, and returns when pods can be created. It runs until Stop; ctx bounds the
// start only. What it has started is gone again when it fails.
func Start(ctx context.Context, o Options) (_ *ControlPlane, err error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	c := &ControlPlane{o: o, ended: make(chan struct{}), stop: make(chan struct{})}
	defer func() {
		if err != nil {
			err = errors.Join(c.explain(err), c.Stop(context.WithoutCancel(ctx)))
		}
	}()
	for _, number := range []int{o.Port, 0, 0} {
		p, err := keepPort(number)
		if err != nil {
			return nil, err
		}
		c.ports = append(c.ports, p)
	}
	if c.dir, err = scratch.New(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := c.start(ctx); err != nil {
		return nil, err
	}
	c.watch.Go(c.wait)
	return c, nil
}

func (c *ControlPlane) start(ctx context.Context) error {
	_, inherited := c.dir.Inherit()
	in := func(file string) string { return filepath.Join(inherited, file) }
	args := arguments{c.o, in}
	api, manager, scheduler := c.ports[0].number, c.ports[1].number, c.ports[2].number
	// etcd needs no certificates: nobody else reaches its socket.
	etcd, err := c.run(Etcd, args.etcd())
	if err != nil {
		return err
	}
	f := &files{dir: c.dir.Path(), in: in, o: c.o, url: "https://" + hostPort(api)}
	if c.admin, err = f.write(); err != nil {
		return err
	}
	if c.nodes, err = serveKubelets(c.dir.Path(), c.o); err != nil {
		return fmt.Errorf("listening for what is asked of nodes: %w", err)
	}
	if err := await(ctx, etcd, "an answer", etcdReady(c.dir.Path())); err != nil {
		return err
	}
	server, err := c.run(APIServer, args.apiServer(api))
	if err != nil {
		return err
	}
	ready, err := healthy(c.admin, api, "/readyz")
	if err != nil {
		return err
	}
	if err := await(ctx, server, "/readyz", ready); err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return c.runClient(ctx, Scheduler, args.scheduler(scheduler), scheduler, nil) })
	g.Go(func() error {
		allowed, err := podsAllowed(c.admin)
		if err != nil {
			return err
		}
		return c.runClient(ctx, ControllerManager, args.controllerManager(manager), manager, allowed)
	})
	return g.Wait()
}

// runClient starts a client of the API server and waits until it is well, and
// until what it is there for is done.
func (c *ControlPlane) runClient(ctx context.Context, name string, args []string, port string, done func(context.Context) error) error {
	p, err := c.run(name, args)
	if err != nil {
		return err
	}
	well, err := healthy(c.admin, port, "/healthz")
	if err != nil {
		return err
	}
	if err := await(ctx, p, "/healthz", well); err != nil || done == nil {
		return err
	}
	return await(ctx, p, "the first service account", done)
}

func (c *ControlPlane) run(name string, args []string) (*process.Process, error) {
	file, _ := c.dir.Inherit()
	p, err := process.Start(process.Command{
		Name: name, Path: c.o.Programs.path(name), Args: args, Env: environment(),
		Files: []*os.File{file}, Log: c.o.Log, Guard: c.o.Guard,
	})
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running = append(c.running, p)
	return p, nil
}

// wait notices when a program ends by itself.
func (c *ControlPlane) wait() {
	c.mu.Lock()
	running := slices.Clone(c.running)
	c.mu.Unlock()
	first := make(chan *process.Process, len(running))
	for _, p := range running {
		c.watch.Go(func() {
			select {
			case <-p.Done():
				first <- p
			case <-c.stop:
			}
		})
	}
	select {
	case p := <-first:
		c.failure = c.explain(p.Ended())
		close(c.ended)
	case <-c.stop:
	}
}

// explain adds to an error about a program where all it has said is.
func (c *ControlPlane) explain(err error) error {
	var ended *process.EndedError
	if log, ok := c.o.Log.(interface{ Name() string }); ok && errors.As(err, &ended) {
		return fmt.Errorf("%w; all it has printed is in %s; start anew, with the programs of `make cluster-bin` if it ends again", err, log.Name())
	}
	return err
}

// Config is the administrator's client configuration. Each call returns a copy.
func (c *ControlPlane) Config() *rest.Config { return rest.CopyConfig(c.admin) }

// Kubeconfig is a self-contained kubeconfig file for the administrator, with
// Options.Name as its context. It gives full access: write it with mode 0600.
func (c *ControlPlane) Kubeconfig() ([]byte, error) { return kubeconfig(c.o.Name, c.admin) }

// Done is closed when a program has ended by itself; Err then says which, how, and
// what it said last.
func (c *ControlPlane) Done() <-chan struct{} { return c.ended }

// Err says why Done was closed; it waits for that.
func (c *ControlPlane) Err() error {
	<-c.ended
	return c.failure
}

// Stop ends the programs in the opposite order of their start and removes all they
// have written. Each is killed when it does not end in time, or when ctx ends.
// Further calls wait for the first and return nil.
func (c *ControlPlane) Stop(ctx context.Context) (err error) {
	c.stopped.Do(func() { err = c.shutDown(ctx) })
	return err
}

func (c *ControlPlane) shutDown(ctx context.Context) error {
	close(c.stop)
	c.mu.Lock()
	running := slices.Clone(c.running)
	c.mu.Unlock()
	slices.Reverse(running)
	for _, p := range running {
		func() {
			ctx, cancel := context.WithTimeout(ctx, stopTimeout)
			defer cancel()
			p.Stop(ctx)
		}()
	}
	c.watch.Wait()
	var errs []error
	if c.nodes != nil {
		errs = append(errs, c.nodes.close())
	}
	for _, p := range c.ports {
		errs = append(errs, p.release())
	}
	if c.dir != nil {
		errs = append(errs, c.dir.Release())
	}
	return errors.Join(errs...)
}
