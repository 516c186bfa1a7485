package cluster

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/kconverge/kconverge/engine/lab/nodes"
	"github.com/kconverge/kconverge/engine/lab/process"
)

const (
	// cgroupPatience is how long the kernel may take to give up the cgroups of
	// processes that are dead.
	cgroupPatience = 10 * time.Second
	cgroupRetry    = 20 * time.Millisecond
	// cgroupPrefix comes before the number of the process that makes a cgroup.
	cgroupPrefix = "kconverge-"
)

// covered are directories of the machine to which the programs of a node write:
// theirs are below Options.Dir. Each is a bind mount in a mount namespace.
var covered = [...]string{"/run", "/var/lib", "/var/log"}

// settings are those of the whole machine that a kubelet changes, and the values
// it wants (k8s.io/kubernetes v1.37.2 pkg/kubelet/cm/container_manager_linux.go,
// setupKernelTunables): it finds them in files that are mounted in their place.
var settings = map[string]string{
	"vm/overcommit_memory": "1", "vm/panic_on_oom": "0",
	"kernel/panic": "10", "kernel/panic_on_oops": "1",
	"kernel/keys/root_maxkeys": "1000000", "kernel/keys/root_maxbytes": "25000000",
}

// firstProcess is what the first process of the namespaces runs, with the
// directory of the ground as its argument. It takes in the processes whose parents
// end, as an init does.
const firstProcess = `set -e
for d in run var/lib var/log; do mount --bind "$1/$d" "/$d"; done
cd "$1/sys"
find . -type f | while read -r f; do mount --bind "$f" "/proc/sys/$f"; done
cd /
echo ready >&3
exec 3>&-
while :; do sleep 3600 & wait $!; done`

// grounds counts those that this process has made.
var grounds atomic.Int64

// ground is what the programs of a real node stand on, so that nothing of them is
// left however this process ends: namespaces of mounts and of processes, which the
// kernel clears away with their first process, and a cgroup of its own in every
// hierarchy, which is all that has to be removed by hand.
type ground struct {
	dir    string
	net    string // path of the node's network namespace
	cgroup string // the name in every hierarchy, with a slash before it
	all    []string
	outer  *process.Process // the parent of the first process
}

// newGround makes the ground of a node below dir.
func newGround(ctx context.Context, n *nodes.Node, dir string, run func(process.Command) (*process.Process, error)) (_ *ground, err error) {
	g := &ground{dir: dir, net: netPath(n)}
	defer func() {
		if err != nil {
			err = errors.Join(err, g.close())
		}
	}()
	for _, d := range covered {
		if strings.HasPrefix(dir+"/", d+"/") {
			return nil, fmt.Errorf("a real node covers %s: take a directory that is not below it, not %s", d, dir)
		}
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			return nil, err
		}
	}
	for name, value := range settings {
		file := filepath.Join(dir, "sys", name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(value+"\n"), 0o644)); err != nil {
			return nil, err
		}
	}
	if err := g.makeCgroups(); err != nil {
		return nil, err
	}
	ready, said, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer ready.Close()
	g.outer, err = run(process.Command{
		Name: n.Name(), Path: "nsenter", Files: []*os.File{said},
		Args: []string{"--net=" + g.net, "unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", firstProcess, "sh", dir},
	})
	_ = said.Close()
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = ready.SetReadDeadline(time.Now()) })
	defer stop()
	if line, err := bufio.NewReader(ready).ReadString('\n'); err != nil || line != "ready\n" {
		return nil, errors.Join(fmt.Errorf("the namespaces of %s were not made (%s): they need unshare of util-linux", n.Name(), strings.Join(g.outer.Last(), " | ")), ctx.Err())
	}
	return g, nil
}

// inside lets a command run on the ground. The process that Start gives is its
// parent: only close ends the command.
func (g *ground) inside(c process.Command) process.Command {
	c.Args = append(g.enter(), append([]string{c.Path}, c.Args...)...)
	c.Path = "nsenter"
	return c
}

// exec runs a program on the ground and returns what it printed.
func (g *ground) exec(ctx context.Context, name string, args ...string) ([]byte, error) {
	out, err := exec.CommandContext(ctx, "nsenter", append(append(g.enter(), name), args...)...).CombinedOutput()
	if err != nil {
		return out, fmt.Errorf("%s: %w: %s", filepath.Base(name), err, bytes.TrimSpace(out))
	}
	return out, nil
}

func (g *ground) enter() []string {
	p := g.outer.PID()
	return []string{"--net=" + g.net, fmt.Sprintf("--mount=/proc/%d/ns/mnt", p), fmt.Sprintf("--pid=/proc/%d/ns/pid_for_children", p)}
}

// close ends everything that runs on the ground and removes the cgroups.
func (g *ground) close() error {
	if g.outer != nil {
		g.kill()
		// When the first process has ended, nothing is left in its namespace
		// (pid_namespaces(7)).
		over, cancel := context.WithTimeout(context.Background(), stopLimit)
		defer cancel()
		g.outer.Stop(over)
	}
	return g.removeCgroups()
}

// kill kills the first process, as whose parent unshare waits.
func (g *ground) kill() {
	p := strconv.Itoa(g.outer.PID())
	children, err := os.ReadFile(filepath.Join("/proc", p, "task", p, "children"))
	if err != nil {
		return // it has ended, or the kernel does not tell: Stop kills the parent, and that this
	}
	for _, text := range strings.Fields(string(children)) {
		if child, err := strconv.Atoi(text); err == nil {
			_ = syscall.Kill(child, syscall.SIGKILL)
		}
	}
}

func netPath(n *nodes.Node) string { return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), n.NetNS()) }

// hierarchies are where cgroups are mounted here.
func hierarchies() ([]string, error) {
	b, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return nil, err
	}
	var out []string
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) > 2 && (f[2] == "cgroup" || f[2] == "cgroup2") {
			out = append(out, f[1])
		}
	}
	if len(out) == 0 {
		return nil, errors.New("no cgroup file system is mounted")
	}
	return out, nil
}

func (g *ground) makeCgroups() error {
	mounted, err := hierarchies()
	if err != nil {
		return err
	}
	g.cgroup = fmt.Sprintf("/%s%d-%d", cgroupPrefix, os.Getpid(), grounds.Add(1))
	for _, at := range mounted {
		removeStale(at)
		path := at + g.cgroup
		if err := os.Mkdir(path, 0o755); err != nil {
			return err
		}
		g.all = append(g.all, path)
		// A new cpuset of cgroup v1 is empty, and takes no process.
		for _, name := range []string{"cpuset.cpus", "cpuset.mems"} {
			if b, err := os.ReadFile(filepath.Join(at, name)); err == nil {
				if err := os.WriteFile(filepath.Join(path, name), b, 0); err != nil && !errors.Is(err, fs.ErrNotExist) {
					return err
				}
			}
		}
	}
	return nil
}

// RemoveStale removes the cgroups of real nodes whose process was killed.
func RemoveStale() {
	mounted, _ := hierarchies() // without any there is nothing to remove
	for _, at := range mounted {
		removeStale(at)
	}
}

// removeStale removes what is left of grounds whose process was killed: by that all
// that ran there ended, and nobody else will. What has a process in it stays.
func removeStale(at string) {
	all, _ := filepath.Glob(filepath.Join(at, cgroupPrefix+"*")) // the pattern is good
	for _, path := range all {
		pid, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(path), cgroupPrefix), "-")
		if _, err := os.Stat("/proc/" + pid); !errors.Is(err, fs.ErrNotExist) || occupied(path) {
			continue
		}
		_ = removeTree(path) // what cannot be removed harms nobody
	}
}

// occupied reports that a process is in a cgroup or in one below, or may be.
func occupied(path string) (found bool) {
	err := filepath.WalkDir(path, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.Name() != "cgroup.procs" {
			return err
		}
		b, err := os.ReadFile(p)
		found = found || len(b) > 0
		return err
	})
	return found || err != nil
}

// removeCgroups removes what the kubelet and the container runtime made below, too.
func (g *ground) removeCgroups() error {
	var errs []error
	deadline := time.Now().Add(cgroupPatience)
	for _, top := range g.all {
		err := removeTree(top)
		for errors.Is(err, syscall.EBUSY) && time.Now().Before(deadline) {
			time.Sleep(cgroupRetry)
			err = removeTree(top)
		}
		errs = append(errs, err)
	}
	g.all = nil
	return errors.Join(errs...)
}

// removeTree removes a cgroup and those below it: their directories alone can be
// removed, and the files go with them.
func removeTree(path string) error {
	entries, err := os.ReadDir(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	errs := []error{err}
	for _, e := range entries {
		if e.IsDir() {
			errs = append(errs, removeTree(filepath.Join(path, e.Name())))
		}
	}
	if err := syscall.Rmdir(path); err != nil && !errors.Is(err, syscall.ENOENT) {
		errs = append(errs, fmt.Errorf("remove the cgroup %s: %w", path, err))
	}
	return errors.Join(errs...)
}
