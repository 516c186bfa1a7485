package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
)

// sizes are the three that every view is looked at in.
var sizes = []size{{80, 24}, {120, 40}, {200, 50}}

// scene runs the program beside it with arguments, presses keys, waits for texts, and has its picture taken at every size if it
// has a name.
type scene struct {
	beside []string
	keys   string
	expect []string
	name   string
}

const enter = "\r"

// lab is a story of a Service that is scaled up and down while a node becomes slow, in
// every view.
var lab = []scene{
	{expect: []string{"converged", "4 ="}},
	{keys: "s7" + enter, expect: []string{"converged", "7 ="}},
	{beside: []string{"lab", "fault", "sync-delay=2500ms@node-3"}, expect: []string{"sync-delay"}},
	{keys: "s3" + enter, expect: []string{"converging", "4 stale"}},
	{keys: "4x", expect: []string{"[4 Nodes]"}, name: "matrix"},
	{keys: "x2", expect: []string{"converged", "3 ="}},
	{keys: "s5" + enter, expect: []string{"converged", "5 ="}},
	{keys: "[", expect: []string{"[2 Timeline]"}, name: "timeline"},
	{keys: "1", expect: []string{"[1 Services]"}, name: "services"},
	{keys: "3", expect: []string{"[3 Path]"}, name: "path"},
	{keys: "4", expect: []string{"[4 Nodes]"}, name: "nodes"},
	{keys: "5", expect: []string{"[5 Engine]"}, name: "engine"},
	{keys: "6", expect: []string{"[6 Events]"}, name: "events"},
	{keys: "7", expect: []string{"[7 Findings"}, name: "findings"},
	{keys: "2?", expect: []string{"Move"}, name: "help"},
	{keys: "\x1b", expect: []string{"[2 Timeline]"}},
	{keys: ":", name: "palette"},
	{keys: "\x1b"},
}

// replay shows what was kept of the same story.
var replay = []scene{
	{expect: []string{"replay", "[2 Timeline]"}, name: "replay"},
	{keys: "3", expect: []string{"[3 Path]"}, name: "path"},
}

// play runs a program and its scenes.
func play(ctx context.Context, c camera, story []scene, env []string, program string, args ...string) error {
	x, err := start(ctx, sizes[1], env, program, args...)
	if err != nil {
		return err
	}
	return errors.Join(scenes(ctx, c, x, story), x.close())
}

func scenes(ctx context.Context, c camera, x *terminal, story []scene) error {
	for _, s := range story {
		if err := run(ctx, x, s.beside); err != nil {
			return err
		}
		if s.keys != "" {
			if err := x.keys(s.keys); err != nil {
				return err
			}
		}
		if err := x.wait(ctx, s.expect...); err != nil {
			return err
		}
		if s.name == "" {
			continue
		}
		for _, size := range sizes {
			if err := x.resize(size); err != nil {
				return err
			}
			if err := x.wait(ctx, s.expect...); err != nil {
				return err
			}
			if err := c.take(x, s.name, size); err != nil {
				return err
			}
		}
		if err := x.resize(sizes[1]); err != nil {
			return err
		}
	}
	return nil
}

// run runs the program once more, in the same surroundings as the one on the terminal.
func run(ctx context.Context, x *terminal, args []string) error {
	if len(args) == 0 {
		return nil
	}
	x.asked()
	cmd := exec.CommandContext(ctx, x.cmd.Path, args...)
	cmd.Env = x.cmd.Env
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w", args, err)
	}
	return nil
}
