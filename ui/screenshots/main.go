package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/kconverge/kconverge/ui/draw"
	"github.com/kconverge/kconverge/ui/frame"
	"github.com/kconverge/kconverge/ui/theme"
)

func main() {
	program := flag.String("program", "bin/kconverge", "the program to run")
	out := flag.String("out", "testdata/screenshots", "the folder for the pictures")
	limit := flag.Duration("for", 5*time.Minute, "how long it may take")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, *limit)
	defer cancel()
	if err := shoot(ctx, *program, *out); err != nil {
		fmt.Fprintln(os.Stderr, "screenshots:", err)
		os.Exit(1)
	}
}

// shoot runs the story of a lab, and then its replay in a light theme. Nothing of
// the person's own configuration or state is read or written.
func shoot(ctx context.Context, program, out string) (err error) {
	home, err := os.MkdirTemp("", "screenshots")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(home)) }()
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	var env []string
	for _, v := range []string{"XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR"} {
		dir := filepath.Join(home, v)
		if err := os.Mkdir(dir, 0o700); err != nil {
			return err
		}
		env = append(env, v+"="+dir)
	}
	c := camera{out: out, theme: &theme.Dark, suffix: "dark"}
	if err := play(ctx, c, lab, env, program, "lab", "--theme", "dark"); err != nil {
		return err
	}
	c = camera{out: out, theme: &theme.Light, suffix: "light"}
	return play(ctx, c, replay, env, program, "replay", "--last", "--theme", "light")
}

// camera writes what a terminal shows.
type camera struct {
	out    string
	theme  *theme.Theme
	suffix string
}

// take writes OUT/NAME-WxH-SUFFIX.svg and .png.
func (c camera) take(x *terminal, name string, s size) error {
	screen := x.capture(c.theme)
	base := filepath.Join(c.out, fmt.Sprintf("%s-%s-%s", name, s, c.suffix))
	return errors.Join(
		c.write(base+".svg", screen, frame.SVG),
		c.write(base+".png", screen, frame.PNG),
	)
}

func (c camera) write(path string, s *draw.Screen, encode func(io.Writer, *draw.Screen, frame.Colors) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(encode(f, s, frame.ColorsFor(c.theme)), f.Close())
}
