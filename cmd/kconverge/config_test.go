package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// configured loads a configuration with the text given.
func configured(t *testing.T, text string) (*config, string, error) {
	t.Helper()
	home := t.TempDir()
	path := filepath.Join(home, "kconverge", "config.yaml")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := loadConfig(func(name string) string { return map[string]string{"XDG_CONFIG_HOME": home}[name] })
	return c, path, err
}

func TestFlagsGoBeforeTheConfiguration(t *testing.T) {
	c, _, err := configured(t, "theme: light\nascii: true\nmouse: false\nfps: 12\nkeys:\n  quit: [X]\n")
	if err != nil {
		t.Fatal(err)
	}
	flags := func(args ...string) *outputFlags {
		var f outputFlags
		fs := pflag.NewFlagSet("", pflag.ContinueOnError)
		f.registerScreen(fs)
		if err := fs.Parse(args); err != nil {
			t.Fatal(err)
		}
		c.apply(&f)
		return &f
	}
	if f := flags(); f.theme != "light" || !f.ascii || !f.noMouse || f.fps != 12 || f.keys["quit"][0] != "X" {
		t.Errorf("without flags: %+v", f)
	}
	if f := flags("--theme=dark", "--ascii=false", "--no-mouse=false", "--fps=30"); f.theme != "dark" || f.ascii || f.noMouse || f.fps != 30 {
		t.Errorf("with flags: %+v", f)
	}
}

func TestWhatIsPrintedIsAConfiguration(t *testing.T) {
	c, path, err := configured(t, "theme: contrast\nkeys:\n  follow: [F]\n  pause: []\n")
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := c.print(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"# From " + path, "theme: contrast", `follow: ["F"]`, "pause: []", `zoom-in: ["+", "="]`, `palette: [":", "ctrl+p"]`} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is not in\n%s", want, b.String())
		}
	}
	again, _, err := configured(t, b.String())
	if err != nil {
		t.Fatalf("what is printed is refused: %v\n%s", err, b.String())
	}
	var b2 bytes.Buffer
	if err := again.print(&b2); err != nil {
		t.Fatal(err)
	}
	_, first, _ := strings.Cut(b.String(), "\n")
	_, second, _ := strings.Cut(b2.String(), "\n")
	if first != second {
		t.Errorf("printed again it is\n%s\nwas\n%s", second, first)
	}
}

func TestAWrongConfigurationIsRefusedByName(t *testing.T) {
	for text, want := range map[string]string{
		"theme: pink\n":                      `theme: no theme is called "pink"`,
		"thme: dark\n":                       `unknown field "thme"`,
		"fps: -1\n":                          "fps: -1 must not be negative",
		"keys:\n  jump: [j]\n":               `keys: no action is called "jump"`,
		"keys:\n  quit: [f]\n":               `keys: key "f" is bound to both`,
		"keys:\n  follow: [qq]\n":            `keys: "qq" of follow is no key`,
		"keys:\n  follow: [\"\\t\"]\n":       `of follow is no key`,
		"keys:\n  quit: []\n":                "keys: quit needs a key",
		"theme: dark\ntheme: light\n":        "theme",
		"this is no configuration at all:::": "configuration",
	} {
		_, path, err := configured(t, text)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%q: %v, want the file and %q", text, err, want)
		}
	}
	missing := filepath.Join(t.TempDir(), "absent.yaml")
	if _, err := loadConfig(func(name string) string { return map[string]string{configVariable: missing}[name] }); err == nil || !strings.Contains(err.Error(), missing) {
		t.Errorf("a file that was asked for and is not there: %v", err)
	}
	if c, err := loadConfig(func(name string) string { return map[string]string{"XDG_CONFIG_HOME": t.TempDir()}[name] }); err != nil || c.found {
		t.Errorf("no configuration: %+v, %v", c, err)
	}
}
