package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/engine/live"
	"github.com/kconverge/kconverge/engine/timeline"
)

// vouchWaiting is how often a silent watch is checked while a command waits
// for nothing else.
const vouchWaiting = time.Second

func newRunCommand() *cobra.Command {
	var flags outputFlags
	var limit time.Duration
	c := &cobra.Command{
		Use:   "run [svc/NAME ...] [flags] -- COMMAND [ARG ...]",
		Short: "Run a command and print every path to convergence that it caused",
		Long: `run starts COMMAND as it is, waits until the workloads have settled and the
Services of the namespace have converged, or those that are named before the --,
and prints each path. --kubeconfig goes to COMMAND as KUBECONFIG; --context and
--namespace choose only what is observed: give COMMAND its own.`,
		Example: `  kconverge run -- kubectl scale deployment/web --replicas=7
  kconverge run svc/web -o json -- kubectl rollout restart deployment/web`,
		Args: func(c *cobra.Command, args []string) error {
			_, cmd := runArgs(c, args)
			if len(cmd) > 0 && c.ArgsLenAtDash() < 0 && strings.HasPrefix(cmd[0], "svc/") {
				return exitf(exitUsage, "run needs a -- between Services and the command: kconverge run %s -- kubectl scale deployment/web --replicas=7", collect.Plain(cmd[0]))
			}
			if len(cmd) == 0 {
				return exitf(exitUsage, "run needs a command: kconverge run -- kubectl scale deployment/web --replicas=7")
			}
			return nil
		},
	}
	c.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		return exitf(exitUsage, "%w (the command's own flags go behind a --: kconverge run -- kubectl scale deployment/web --replicas=7)", flagError(err))
	})
	where := newClusterFlags(c.Flags())
	flags.register(c.Flags())
	c.Flags().DurationVar(&limit, "timeout", 5*time.Minute, "how long to wait for convergence after the command")
	c.RunE = func(c *cobra.Command, args []string) error {
		flags.headless = true
		if err := validTimeout(limit); err != nil {
			return err
		}
		services, args := runArgs(c, args)
		return where.run(c, &flags, services, vouchWaiting, func(_ *cluster, o *observation) {
			inScope := o.keep
			o.keep = func(s *timeline.Service) bool { return inScope(s) && len(s.Paths) > 0 }
			cmd := command{args: args, out: c.ErrOrStderr()}
			if k := *where.kubectl.KubeConfig; k != "" {
				cmd.env = append(cmd.env, "KUBECONFIG="+k)
			}
			o.during = func(ctx context.Context, rt *live.Runtime) error {
				return runAndSettle(ctx, rt, cmd, o.scope, askAll(o.sources), limit)
			}
		})
	}
	return c
}

// runArgs are the Services named before the --, and the command after it. Without one all
// is the command.
func runArgs(c *cobra.Command, args []string) (services, cmd []string) {
	n := max(0, c.ArgsLenAtDash())
	return args[:n], args[n:]
}

// command is a command of the user's.
type command struct {
	args []string
	env  []string // added to the environment
	out  io.Writer
	// bound is whether what it leaves running ends with this program.
	bound bool
}

var errInterrupted = errors.New("interrupted")

// runAndSettle waits for the sources' first word, runs the command, and waits
// until everything has settled and converged. The command's own failure has
// exit code 5, but what it set off is still awaited and shown.
func runAndSettle(ctx context.Context, rt *live.Runtime, cmd command, scope live.Scope, ask func(), limit time.Duration) error {
	first, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if _, why, err := rt.Wait(first, vouched(ask)); err != nil {
		return exitf(exitUnreachable, "before the command: waiting for %s: %w", why, err)
	}
	end, failed := cmd.run(ctx, rt)
	defer end()
	if errors.Is(failed, errInterrupted) {
		return failed // Ctrl-C means the whole, not only the command
	}
	err := settle(ctx, rt, live.Convergence{Scope: scope, Settled: true, After: time.Now(), Ask: ask}, limit)
	if failed != nil {
		return failed
	}
	return err
}

// vouched holds once every needed source has given its word.
func vouched(ask func()) live.Condition {
	return func(s *timeline.Snapshot) (bool, string) {
		if !s.Watermark.IsZero() {
			return true, ""
		}
		ask()
		for _, src := range s.Sources {
			if src.Needed && src.Vouched.IsZero() {
				return false, string(src.ID) + " " + src.Detail
			}
		}
		return false, "the first lists"
	}
}

// run runs the command to its end. A command on a terminal that Ctrl-C ended
// returns errInterrupted among its errors. end ends what it left running, if that
// is bound to this program.
func (c command) run(ctx context.Context, sink collect.Sink) (end func(), err error) {
	sink.Emit(collect.Event{At: time.Now(), Source: collect.SourceUser, Payload: &collect.Action{Text: actionText(c.args), By: "run"}})
	j := newJob(ctx, c.args[0], c.args[1:]...)
	j.Env = append(os.Environ(), c.env...)
	j.Stdin = os.Stdin
	j.Stdout, j.Stderr = c.out, c.out // the report has standard output for itself
	err = j.run()
	end = func() {}
	if c.bound {
		end = j.end
	}
	if ctx.Err() != nil {
		j.end() // what did not heed the interruption
	}
	var exit *exec.ExitError
	switch {
	case err == nil:
		return end, nil
	case errors.As(err, &exit) && interrupted(exit):
		return end, exitf(exitCommand, "the command was ended (%s): %s: %w", exit, actionText(c.args), errInterrupted)
	case errors.As(err, &exit) && !exit.Exited():
		return end, exitf(exitCommand, "the command was ended (%s): %s", exit, actionText(c.args))
	case errors.As(err, &exit):
		return end, exitf(exitCommand, "the command failed with exit code %d: %s", exit.ExitCode(), actionText(c.args))
	}
	return end, exitf(exitCommand, "the command could not be run: %w", err)
}

// keep chooses the Services of a scope.
func keep(scope live.Scope) func(*timeline.Service) bool {
	return func(s *timeline.Service) bool {
		if len(scope.Services) > 0 {
			return slices.Contains(scope.Services, s.Namespace+"/"+s.Name)
		}
		return len(scope.Namespaces) == 0 || slices.Contains(scope.Namespaces, s.Namespace)
	}
}

// actionText is a command line for a mark on the axis: short, on one line.
func actionText(args []string) string {
	const most = 120
	text := strings.Join(strings.Fields(strings.Join(args, " ")), " ")
	text = strings.TrimPrefix(text, "sh -c ")
	if r := []rune(text); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return text
}
