package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/util/version"
)

// The programs of a control plane, by their names.
const (
	Etcd              = "etcd"
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
)

// EtcdMinor is the release of etcd that Kubernetes 1.37 is made for
// (k8s.io/kubernetes v1.37.2 build/dependencies.yaml).
const EtcdMinor = "3.7"

// versionTimeout bounds how long a program may take to say its version.
const versionTimeout = time.Minute

// Programs are the programs of a control plane that were found to fit together.
type Programs struct {
	// Dir is where they are, as an absolute path.
	Dir string
	// Kubernetes and Etcd are their versions: "v1.37.2", "3.7.0".
	Kubernetes, Etcd string
}

func (p *Programs) path(name string) string { return filepath.Join(p.Dir, name) }

// Find looks for the programs in dir and asks each for its version: those of
// Kubernetes must be of one version, and of the minor release that want, such as
// "v1.37.2", is of. The error names the program and the way out.
func Find(ctx context.Context, dir, want string) (*Programs, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("the control plane's directory: %w", err)
	}
	p := &Programs{Dir: dir}
	ctx, cancel := context.WithTimeout(ctx, versionTimeout)
	defer cancel()
	names := []string{Etcd, APIServer, ControllerManager, Scheduler}
	for _, name := range names {
		if err := p.present(name); err != nil {
			return nil, err
		}
	}
	said := make([]*version.Version, len(names))
	g, ctx := errgroup.WithContext(ctx)
	for i, name := range names {
		g.Go(func() (err error) {
			said[i], err = p.ask(ctx, name)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	p.Etcd = said[0].String()
	if wanted := version.MustParse(EtcdMinor); !said[0].WithPatch(0).EqualTo(wanted.WithPatch(0)) {
		return nil, fmt.Errorf("%s is version %s, and Kubernetes %s wants %s.x: build it with `make cluster-bin`, or name another directory", p.path(Etcd), p.Etcd, want, EtcdMinor)
	}
	minor := version.MustParse(want)
	p.Kubernetes = "v" + said[1].String()
	for i, v := range said[1:] {
		name := names[i+1]
		switch {
		case v.Major() != minor.Major() || v.Minor() != minor.Minor():
			return nil, fmt.Errorf("%s is version v%s, and the lab's nodes are of %s: build v%d.%d with `make cluster-bin`, or name another directory", p.path(name), v, want, minor.Major(), minor.Minor())
		case !v.EqualTo(said[1]):
			return nil, fmt.Errorf("%s is version v%s and %s is %s: put programs of one version into %s", p.path(name), v, APIServer, p.Kubernetes, dir)
		}
	}
	return p, nil
}

// present tells that a program is there and may be run.
func (p *Programs) present(name string) error {
	fi, err := os.Stat(p.path(name))
	switch {
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("there is no %s in %s: `make cluster-bin` builds all four programs of a control plane (%s, %s, %s, %s) into testdata/cluster/bin",
			name, p.Dir, Etcd, APIServer, ControllerManager, Scheduler)
	case err != nil:
		return fmt.Errorf("%s: %w: name another directory", name, err)
	case fi.IsDir() || fi.Mode()&0o111 == 0:
		return fmt.Errorf("%s is no program that can be run: build it with `make cluster-bin`, or name another directory", p.path(name))
	}
	return nil
}

// ask runs PROGRAM --version, which says "Kubernetes v1.37.2" or, over several
// lines, "etcd Version: 3.7.0".
func (p *Programs) ask(ctx context.Context, name string) (*version.Version, error) {
	c := exec.CommandContext(ctx, p.path(name), "--version")
	c.Env = environment()
	out, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("%s --version: %w: build it with `make cluster-bin`, or name another directory", p.path(name), err)
	}
	line, _, _ := strings.Cut(string(out), "\n")
	before := "Kubernetes "
	if name == Etcd {
		before = "etcd Version: "
	}
	text, ok := strings.CutPrefix(strings.TrimSpace(line), before)
	v, err := version.ParseSemantic(text)
	if !ok || err != nil {
		return nil, fmt.Errorf("%s --version says %q, and not the version of %s: build it with `make cluster-bin`, or name another directory", p.path(name), line, name)
	}
	return v, nil
}
