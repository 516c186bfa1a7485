package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/kconverge/kconverge/engine/report"
)

// These tests run the program as people do. TestMain builds it once; kubectl is
// the real one that testdata/cluster builds, where ordinary users find it too;
// clusterBin is the folder of all that it builds.
var program, kubectlDir, clusterBin string

func TestMain(m *testing.M) {
	if kubeconfig := os.Getenv(peerEnv); kubeconfig != "" {
		fmt.Fprintln(os.Stderr, watchBarely(kubeconfig))
		os.Exit(1)
	}
	code, err := func() (int, error) {
		dir, err := os.MkdirTemp(openTemp(), "kconverge-test-")
		if err != nil {
			return 1, err
		}
		defer os.RemoveAll(dir)
		// No test looks at the configuration of who runs it.
		if err := os.Setenv("XDG_CONFIG_HOME", dir); err != nil {
			return 1, err
		}
		program = filepath.Join(dir, "kconverge")
		// It and these tests are one program to recordings.
		version = "tested"
		build := exec.Command("go", "build", "-ldflags", "-X main.version="+version, "-o", program, ".")
		if out, err := build.CombinedOutput(); err != nil {
			return 1, fmt.Errorf("build: %w\n%s", err, out)
		}
		// An ordinary user of a test must be able to run it.
		if err := os.Chmod(dir, 0o755); err != nil {
			return 1, err
		}
		if clusterBin, err = filepath.Abs("../../testdata/cluster/bin"); err != nil {
			return 1, err
		}
		kubectlDir = clusterBin
		if !open(kubectlDir) {
			// A checkout in somebody's own folder: ordinary users get a copy.
			if b, err := os.ReadFile(filepath.Join(kubectlDir, "kubectl")); err == nil {
				if err := os.WriteFile(filepath.Join(dir, "kubectl"), b, 0o755); err != nil {
					return 1, err
				}
				kubectlDir = dir
			}
		}
		return m.Run(), nil
	}()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}

// openTemp is a temporary directory that every user may look into, as those do
// whom a test lets run the program; TMPDIR may lie in somebody's own folder.
func openTemp() string {
	for _, dir := range []string{os.TempDir(), "/tmp", "/var/tmp"} {
		if open(dir) {
			return dir
		}
	}
	return os.TempDir()
}

// open tells that every user may look into a folder and all above it.
func open(dir string) bool {
	for {
		fi, err := os.Stat(dir)
		if err != nil || fi.Mode()&0o001 == 0 {
			return false
		}
		up := filepath.Dir(dir)
		if up == dir {
			return true
		}
		dir = up
	}
}

// kubectl gives the path of the real kubectl.
func kubectl(t testing.TB) string {
	t.Helper()
	path := filepath.Join(kubectlDir, "kubectl")
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%v: build it with `make cluster-bin`", err)
	}
	return path
}

// home is a private world for one run: its own runtime, state and temporary
// directories, so that what is left behind can be seen.
type home struct {
	dir string
	env []string
	// inside is what every program of the home is started by: nothing, or an
	// nsenter into another network namespace.
	inside []string
}

// command is a program as the home starts it.
func (h *home) command(name string, args ...string) *exec.Cmd {
	all := append(append(slices.Clone(h.inside), name), args...)
	cmd := exec.Command(all[0], all[1:]...)
	cmd.Env = h.env
	return cmd
}

func newHome(t testing.TB) *home {
	t.Helper()
	// Not t.TempDir: its long path does not fit a unix socket's name.
	dir, err := os.MkdirTemp(openTemp(), "kch")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	h := &home{dir: dir}
	for name, value := range map[string]string{"XDG_RUNTIME_DIR": "run", "XDG_STATE_HOME": "state", "TMPDIR": "tmp", "HOME": "home"} {
		if err := os.Mkdir(filepath.Join(dir, value), 0o700); err != nil {
			t.Fatal(err)
		}
		h.env = append(h.env, name+"="+filepath.Join(dir, value))
	}
	h.env = append(h.env, "PATH="+kubectlDir+":"+os.Getenv("PATH"), "TERM=xterm-256color", "COLORTERM=truecolor", "LANG=C.UTF-8")
	return h
}

func (h *home) kubeconfig() string {
	return filepath.Join(h.dir, "run", "kconverge", "lab.kubeconfig")
}

// left lists what a run left behind outside its state directory.
func (h *home) left(t *testing.T) []string {
	t.Helper()
	var out []string
	for _, d := range []string{"run", "tmp"} {
		entries, err := os.ReadDir(filepath.Join(h.dir, d))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			out = append(out, filepath.Join(d, e.Name()))
		}
	}
	return out
}

// buffer is a bytes.Buffer that may be read while a process writes to it.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// process is a running kconverge.
type process struct {
	cmd            *exec.Cmd
	stdout, stderr buffer
	done           chan struct{}
	err            error
}

func (h *home) start(t testing.TB, args ...string) *process {
	t.Helper()
	p := &process{cmd: h.command(program, args...), done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = &p.stdout, &p.stderr
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { p.err = p.cmd.Wait(); close(p.done) }()
	t.Cleanup(func() {
		_ = p.cmd.Process.Signal(syscall.SIGTERM)
		<-p.done
	})
	return p
}

// wait returns the exit code.
func (p *process) wait() int {
	<-p.done
	return p.cmd.ProcessState.ExitCode()
}

// output runs a command in the home to its end and gives what it printed; it must
// not fail.
func (h *home) output(t *testing.T, cmd *exec.Cmd) (stdout, stderr string) {
	t.Helper()
	var said buffer
	cmd.Env, cmd.Stderr = h.env, &said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, said.String())
	}
	return string(out), said.String()
}

// run runs kconverge to its end.
func (h *home) run(t *testing.T, stdin io.Reader, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Env = h.env
	cmd.Stdin = stdin
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			t.Fatal(err)
		}
	}
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

// lab starts a headless lab and waits until it says that it is ready.
func (h *home) lab(t testing.TB, args ...string) *process {
	t.Helper()
	p := h.start(t, append([]string{"lab", "--headless"}, args...)...)
	eventually(t, "the lab is ready", func() bool {
		select {
		case <-p.done:
			t.Fatalf("the lab ended: %v\n%s", p.err, p.stderr.String())
		default:
		}
		return strings.Contains(p.stderr.String(), "The lab is ready")
	})
	return p
}

// kubectl runs the real kubectl against the home's lab.
func (h *home) kubectl(t testing.TB, args ...string) string {
	t.Helper()
	cmd := h.command(kubectl(t), append([]string{"--kubeconfig", h.kubeconfig()}, args...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// patience is how long a condition is awaited before the test is given up: far
// beyond what anything takes, so that only a broken program reaches it.
const patience = 2 * time.Minute

// eventually polls a condition of another process.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-ctx.Done():
			t.Fatalf("after %s still not: %s", patience, what)
		case <-tick.C:
		}
	}
}

func parse(t *testing.T, stdout string) *report.Report {
	t.Helper()
	r := new(report.Report)
	if err := json.Unmarshal([]byte(stdout), r); err != nil {
		t.Fatalf("%v in\n%s", err, stdout)
	}
	if r.Schema != report.Schema {
		t.Errorf("schema %q", r.Schema)
	}
	return r
}
