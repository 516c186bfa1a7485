package main

import (
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A shell that has something in the background and something in the foreground.
const busy = "sleep 1000 & echo running; sleep 1000; true"

func TestWhatTheCommandStartedEndsHoweverTheLabEnds(t *testing.T) {
	for _, tc := range []struct {
		name   string
		signal syscall.Signal
		below  bool // to the lab, not to its guard
	}{
		{"SIGTERM", syscall.SIGTERM, false},
		{"SIGHUP", syscall.SIGHUP, false},
		{"SIGKILL", syscall.SIGKILL, false},
		{"SIGKILL below the guard", syscall.SIGKILL, true},
	} {
		for _, place := range []string{"terminal", "no terminal"} {
			t.Run(tc.name+", "+place, func(t *testing.T) {
				h := newHome(t)
				args := []string{"lab", "--headless", "--nodes", "1", "--run", busy}
				var shown interface{ String() string }
				var pid int
				var done <-chan struct{}
				if place == "terminal" {
					var b buffer
					var cmd *exec.Cmd
					cmd, _, done = h.startOnTerminal(t, 40, 120, &b, args...)
					pid, shown = cmd.Process.Pid, &b
				} else {
					p := h.start(t, args...)
					pid, shown, done = p.cmd.Process.Pid, &p.stderr, p.done
				}
				eventually(t, "the command runs", func() bool { return strings.Contains(shown.String(), "running") })
				if tc.below {
					pid = h.below(t, pid)
				}
				if err := syscall.Kill(pid, tc.signal); err != nil {
					t.Fatal(err)
				}
				<-done
				eventually(t, "every process is gone", func() bool { return len(h.descendants(t)) == 0 })
				if place == "no terminal" && !tc.below && tc.signal != syscall.SIGKILL && !strings.Contains(shown.String(), "was ended") {
					t.Errorf("it says\n%s", shown.String())
				}
			})
		}
	}
}

func TestWhatTheCommandLeftInTheBackgroundEndsWithTheLab(t *testing.T) {
	h := newHome(t)
	p := h.start(t, "lab", "--headless", "--nodes", "1", "--run", "sleep 1000 >/dev/null 2>&1 &")
	if code := p.wait(); code != exitOK {
		t.Errorf("exit code %d\n%s", code, p.stderr.String())
	}
	eventually(t, "every process is gone", func() bool { return len(h.descendants(t)) == 0 })
}

func TestTheCommandHasTheTerminal(t *testing.T) {
	h := newHome(t)
	var shown buffer
	_, terminal, done := h.startOnTerminal(t, 40, 120, &shown, "lab", "--headless", "--nodes", "1", "--run", "echo ask; read -r x; echo \"answer $x\"")
	eventually(t, "it asks", func() bool { return strings.Contains(shown.String(), "ask") })
	if _, err := terminal.WriteString("hello\n"); err != nil {
		t.Fatal(err)
	}
	<-done
	if !strings.Contains(shown.String(), "answer hello") {
		t.Errorf("it says\n%s", shown.String())
	}
}

func TestCtrlCEndsTheCommandAndTheLab(t *testing.T) {
	h := newHome(t)
	var shown buffer
	_, terminal, done := h.startOnTerminal(t, 40, 120, &shown, "lab", "--headless", "--nodes", "1", "--run", busy)
	eventually(t, "the command runs", func() bool { return strings.Contains(shown.String(), "running") })
	if _, err := terminal.WriteString("\x03"); err != nil {
		t.Fatal(err)
	}
	<-done
	if !strings.Contains(shown.String(), "was ended") {
		t.Errorf("it says\n%s", shown.String())
	}
	eventually(t, "every process is gone", func() bool { return len(h.descendants(t)) == 0 })
	if left := h.left(t); len(left) > 0 {
		t.Errorf("left behind: %s", left)
	}
}

// shell runs a shell with job control, as a person has, on a terminal of its own.
func (h *home) shell(t *testing.T) (shown *buffer, say func(string), done <-chan struct{}) {
	t.Helper()
	shown = &buffer{}
	terminal, done := h.commandOnTerminal(t, 40, 120, shown, exec.Command("bash", "--norc", "-i"))
	return shown, func(s string) {
		t.Helper()
		if _, err := terminal.WriteString(s); err != nil {
			t.Fatal(err)
		}
	}, done
}

// A pager in the same pipeline wants the terminal as well: whoever takes it from
// the other stops it.
func TestAPipelineKeepsTheTerminal(t *testing.T) {
	h := newHome(t)
	shown, say, done := h.shell(t)
	say(program + " lab --headless --nodes 1 --run 'echo run\"\"ning; read -r x </dev/tty; echo \"answer $x\"' | sh -c 'stty -echo </dev/tty; cat >/dev/null; stty echo </dev/tty; echo pag\"\"er'\n")
	eventually(t, "the command runs", func() bool { return strings.Contains(shown.String(), "running") })
	say("hello\n")
	eventually(t, "the command is answered", func() bool { return strings.Contains(shown.String(), "answer hello") })
	eventually(t, "the pipeline ends", func() bool { return strings.Contains(shown.String(), "pager") })
	if strings.Contains(shown.String(), "Stopped") {
		t.Errorf("something was stopped:\n%s", shown.String())
	}
	say("exit\n")
	<-done
	eventually(t, "every process is gone", func() bool { return len(h.descendants(t)) == 0 })
}

// The shell gets the terminal back when the command is stopped, and what it lets
// go on has it again.
func TestCtrlZGivesTheShellTheTerminal(t *testing.T) {
	h := newHome(t)
	shown, say, done := h.shell(t)
	say(program + " lab --headless --nodes 1 --run 'echo as\"\"k; read -r x; echo \"answer $x\"'\n")
	eventually(t, "it asks", func() bool { return strings.Contains(shown.String(), "ask") })
	say("\x1a")
	eventually(t, "the shell says so", func() bool { return strings.Contains(shown.String(), "Stopped") })
	say("echo sh\"\"ell; fg\n")
	eventually(t, "the shell is there", func() bool { return strings.Contains(shown.String(), "shell") })
	say("hello\n")
	eventually(t, "the command goes on", func() bool { return strings.Contains(shown.String(), "answer hello") })
	say("exit\n")
	select {
	case <-done:
	case <-time.After(patience):
		t.Errorf("the shell does not end:\n%s", shown.String())
	}
	eventually(t, "every process is gone", func() bool { return len(h.descendants(t)) == 0 })
}
