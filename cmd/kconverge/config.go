package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/kconverge/kconverge/ui"
	"github.com/kconverge/kconverge/ui/theme"
	"github.com/kconverge/kconverge/ui/view"
)

// configVariable names another file than the usual one.
const configVariable = "KCONVERGE_CONFIG"

// config is how a person wants the screen, from a file. Flags go before it.
type config struct {
	Theme string `json:"theme,omitempty"`
	ASCII bool   `json:"ascii,omitempty"`
	Mouse *bool  `json:"mouse,omitempty"`
	FPS   int    `json:"fps,omitempty"`
	// KeepLast: the last minutes of every session are kept, for replay --last.
	KeepLast *bool `json:"keepLast,omitempty"`
	// Keys replace those of the actions named; an action that is not named
	// keeps its own, one with an empty list has none.
	Keys map[string][]string `json:"keys,omitempty"`

	path  string // of the file, whether there is one
	found bool
}

// configPath is where the configuration stands, and whether somebody asked for that
// very file: KCONVERGE_CONFIG, else kconverge/config.yaml in the user's folder for
// configurations (XDG_CONFIG_HOME). It is empty where there is no such folder.
func configPath(env func(string) string) (path string, asked bool) {
	if p := env(configVariable); p != "" {
		return p, true
	}
	dir := env("XDG_CONFIG_HOME")
	if dir == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", false
		}
		dir = filepath.Join(home, ".config")
	}
	return filepath.Join(dir, "kconverge", "config.yaml"), false
}

// loadConfig reads the configuration. There need not be one, unless it is asked for
// by name. What is in it must be right: an error names the file and what is wrong.
func loadConfig(env func(string) string) (*config, error) {
	c := &config{}
	path, asked := configPath(env)
	if c.path = path; path == "" {
		return c, nil
	}
	b, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !asked:
		return c, nil
	case err != nil && asked:
		return nil, fmt.Errorf("%s: %w", configVariable, err)
	case err != nil:
		return nil, fmt.Errorf("configuration: %w (%s names another file)", err, configVariable)
	}
	c.found = true
	if err := yaml.UnmarshalStrict(b, c); err != nil {
		return nil, fmt.Errorf("configuration %s: %w: kconverge --print-config shows what may stand there once it is out of the way", path, err)
	}
	if _, err := theme.ByName(c.Theme); err != nil {
		return nil, fmt.Errorf("configuration %s: theme: %w", path, err)
	}
	if c.FPS < 0 {
		return nil, fmt.Errorf("configuration %s: fps: %d must not be negative", path, c.FPS)
	}
	if err := ui.CheckKeys(c.Keys); err != nil {
		return nil, fmt.Errorf("configuration %s: keys: %w", path, err)
	}
	return c, nil
}

// apply sets what no flag has set.
func (c *config) apply(f *outputFlags) {
	free := func(flag string) bool { return !f.given.Changed(flag) }
	if c.Theme != "" && free("theme") {
		f.theme = c.Theme
	}
	if c.ASCII && free("ascii") {
		f.ascii = true
	}
	if c.Mouse != nil && free("no-mouse") {
		f.noMouse = !*c.Mouse
	}
	if c.FPS > 0 && free("fps") {
		f.fps = c.FPS
	}
	f.keys, f.forget = c.Keys, c.KeepLast != nil && !*c.KeepLast
}

// print writes the configuration as a file that could be in its place.
func (c *config) print(w io.Writer) error {
	var b strings.Builder
	switch {
	case c.path == "":
		fmt.Fprintf(&b, "# No file: there is no home folder (%s names one). These are the defaults.\n", configVariable)
	case c.found:
		fmt.Fprintf(&b, "# From %s\n", c.path)
	default:
		fmt.Fprintf(&b, "# These are the defaults. What you write to %s goes before them.\n", c.path)
	}
	name, mouse, fps := c.Theme, true, c.FPS
	if name == "" {
		name = "auto"
	}
	if c.Mouse != nil {
		mouse = *c.Mouse
	}
	if fps == 0 {
		fps = defaultFPS
	}
	fmt.Fprintf(&b, "\n# %s; auto follows the terminal's background\ntheme: %s\n", strings.Join(theme.Names, ", "), name)
	fmt.Fprintf(&b, "# 7-bit characters only\nascii: %v\n# false leaves the mouse to the terminal\nmouse: %v\n# frames a second at most\nfps: %d\n", c.ASCII, mouse, fps)
	fmt.Fprintf(&b, "# keep the last minutes of every session in %s, for replay --last\nkeepLast: %v\n", stateDir(), c.KeepLast == nil || *c.KeepLast)
	b.WriteString("# The keys of each action. Those that you leave out keep theirs; [] takes all away.\nkeys:\n")
	group := ""
	for _, i := range view.Actions {
		if i.Group != group {
			group = i.Group
			fmt.Fprintf(&b, "  # %s\n", group)
		}
		keys, ok := c.Keys[string(i.Action)]
		if !ok {
			keys = i.Keys
		}
		quoted := make([]string, len(keys))
		for n, k := range keys {
			quoted[n] = fmt.Sprintf("%q", k)
		}
		line := fmt.Sprintf("  %s: [%s]", i.Action, strings.Join(quoted, ", "))
		fmt.Fprintf(&b, "%-44s # %s\n", line, i.Help)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
