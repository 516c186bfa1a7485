package main

import (
	"os"
	"slices"

	"github.com/charmbracelet/x/term"
)

// guardedEnv marks the process below the guard and tells it the user's id.
const guardedEnv = "KCONVERGE_GUARDED"

// userID is the user's id outside the user namespace in which an ordinary user's
// lab runs, where it is 0.
var userID = os.Getuid()

// unguarded are the commands that neither draw nor make anything that could be
// left behind.
var unguarded = []string{"version", "run", "wait", "record", "agent", "manifest", "info"}

// wantsGuard tells from the command line whether the program needs a parent
// that cleans up after it: the lab always (it makes namespaces and files), the
// others when they draw.
func wantsGuard(args []string) bool {
	command := commandOf(args)
	if i := slices.Index(args, "--"); i >= 0 {
		args = args[:i]
	}
	switch {
	case slices.Contains(args, "-h"), slices.Contains(args, "--help"):
		return false
	case command == "lab":
		return true
	}
	return !slices.Contains(unguarded, command) && draws(args)
}

// draws tells from the command line whether the program has a screen on this
// terminal. Until the screen is gone nothing else may be written there.
func draws(args []string) bool {
	c, rest, err := newRoot().Find(args)
	if err != nil || c.ParseFlags(rest) != nil {
		return false // a line that says why is all that follows
	}
	// A command without such a flag has its zero value.
	headless, _ := c.Flags().GetBool("headless")
	command, _ := c.Flags().GetString("run")
	return !headless && command == "" && term.IsTerminal(os.Stdin.Fd()) && term.IsTerminal(os.Stdout.Fd())
}

// commandOf tells which command the arguments name: flags may stand before it.
func commandOf(args []string) string {
	c, _, err := newRoot().Find(args)
	if err != nil {
		return ""
	}
	return c.Name()
}

// wantsNamespace tells whether the command makes network namespaces and the
// user may do so only inside a user namespace.
func wantsNamespace(args []string) bool {
	return commandOf(args) == "lab" && os.Geteuid() != 0
}
