package engine

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/kconverge/kconverge"

type pkg struct {
	ImportPath string
	Dir        string
	Standard   bool
	GoFiles    []string
	Deps       []string
}

// packages lists every package of the module with all it depends on.
func packages(t *testing.T) map[string]pkg {
	t.Helper()
	cmd := exec.Command("go", "list", "-deps", "-json=ImportPath,Dir,Standard,GoFiles,Deps", "./...")
	cmd.Dir = ".."
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.Bytes())
	}
	all := map[string]pkg{}
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all[p.ImportPath] = p
	}
}

// under reports that a package path is prefix or below it.
func under(path string, prefixes ...string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool {
		p = module + "/" + p
		return path == p || strings.HasPrefix(path, p+"/")
	})
}

func TestArrowsPointOneWay(t *testing.T) {
	all := packages(t)
	pure := []string{"engine/desired", "engine/timeline", "engine/lanes", "engine/findings", "engine/report", "engine/export", "engine/compare"}
	rules := []struct {
		name  string
		from  func(path string) bool
		wrong func(dep string, p pkg) bool
	}{
		{
			"collect itself needs the standard library only",
			func(p string) bool { return p == module+"/collect" },
			func(_ string, p pkg) bool { return !p.Standard },
		},
		{
			"collect knows nothing of engine, ui or cmd",
			func(p string) bool { return under(p, "collect") },
			func(dep string, _ pkg) bool { return under(dep, "engine", "ui", "cmd") },
		},
		{
			"the pure packages need collect, each other and nothing that talks to a cluster, a kernel or a terminal",
			func(p string) bool {
				return slices.ContainsFunc(pure, func(x string) bool { return p == module+"/"+x })
			},
			func(dep string, p pkg) bool {
				return !p.Standard && dep != module+"/collect" && !under(dep, pure...) && !strings.HasPrefix(dep, "github.com/rivo/uniseg") &&
					!strings.HasPrefix(dep, "github.com/charmbracelet/x/ansi") && !strings.HasPrefix(dep, "github.com/clipperhouse/") &&
					!strings.HasPrefix(dep, "github.com/mattn/go-runewidth") && !strings.HasPrefix(dep, "github.com/lucasb-eyer/go-colorful") && !strings.HasPrefix(dep, "github.com/bits-and-blooms/") && !strings.HasPrefix(dep, "golang.org/x/") && !strings.HasPrefix(dep, "github.com/xo/terminfo")
			},
		},
		{
			"desired and timeline know nothing of drawing",
			func(p string) bool { return p == module+"/engine/desired" || p == module+"/engine/timeline" },
			func(dep string, p pkg) bool {
				return !p.Standard && !under(dep, "engine/desired", "engine/timeline") && dep != module+"/collect"
			},
		},
		{
			"the reference is an opinion of its own: it knows what events are and nothing else",
			func(p string) bool { return p == module+"/engine/timeline/reference" },
			func(dep string, p pkg) bool {
				return !p.Standard && dep != module+"/collect"
			},
		},
		{
			"nodes carry no cluster client, lab or screen",
			func(p string) bool { return under(p, "cmd/kconverge-agent", "collect/agent") },
			func(dep string, _ pkg) bool {
				return under(dep, "engine", "ui", "cmd/kconverge", "collect/kube", "collect/nodelog") || strings.HasPrefix(dep, "k8s.io/")
			},
		},
		{
			"live knows no lab, no screen and no cluster client",
			func(p string) bool { return under(p, "engine/live") },
			func(dep string, _ pkg) bool {
				return under(dep, "engine/lab", "ui", "cmd", "collect/kube", "engine/reconcile", "engine/rulesync") || strings.HasPrefix(dep, "k8s.io/")
			},
		},
		{
			"the lab's parts emit through collect.Sink and never see the model",
			func(p string) bool { return under(p, "engine/lab", "engine/reconcile", "engine/rulesync") },
			func(dep string, _ pkg) bool {
				return under(dep, "engine/timeline", "engine/live", "engine/lanes", "ui", "cmd")
			},
		},
		{
			"faults know none of the parts in which they act",
			func(p string) bool { return under(p, "engine/lab/faults") },
			func(dep string, _ pkg) bool { return under(dep, "engine", "ui", "cmd") || under(dep, "collect/kube") },
		},
		{
			"only the lab and the command line know faults",
			func(p string) bool {
				return under(p, "engine", "collect", "ui") && !under(p, "engine/lab/faults", "engine/scenario") && p != module+"/engine/lab"
			},
			func(dep string, _ pkg) bool { return under(dep, "engine/lab/faults") },
		},
		{
			"scenarios stand above the lab and know no screen",
			func(p string) bool { return under(p, "engine/scenario") },
			func(dep string, _ pkg) bool {
				return under(dep, "ui", "cmd", "engine/cluster", "engine/lanes/lanestest")
			},
		},
		{
			"only the program plays scenarios",
			func(p string) bool { return under(p, "collect", "engine", "ui") && !under(p, "engine/scenario") },
			func(dep string, _ pkg) bool { return under(dep, "engine/scenario") },
		},
		{
			"the real cluster knows nothing of what observes it",
			func(p string) bool { return under(p, "engine/cluster") },
			func(dep string, _ pkg) bool {
				return under(dep, "engine/timeline", "engine/live", "engine/lanes", "engine/report", "engine/rulesync", "engine/reconcile", "ui", "cmd", "collect/kube", "collect/nodelog", "collect/noderules", "collect/agent")
			},
		},
		{
			"the screen reads snapshots and never a source",
			func(p string) bool { return under(p, "ui") },
			func(dep string, _ pkg) bool {
				return under(dep, "cmd", "engine/lab", "engine/reconcile", "engine/rulesync", "collect/kube", "collect/noderules") || strings.HasPrefix(dep, "k8s.io/")
			},
		},
	}
	for _, rule := range rules {
		t.Run(rule.name, func(t *testing.T) {
			checked := 0
			for path, p := range all {
				if !rule.from(path) {
					continue
				}
				checked++
				for _, dep := range p.Deps {
					if d, ok := all[dep]; ok && rule.wrong(dep, d) {
						t.Errorf("%s depends on %s", path, dep)
					}
				}
			}
			if checked == 0 {
				t.Error("no package is under this rule")
			}
		})
	}
}

// pureFolders are the folders whose code may not read a clock.
var pureFolders = []string{"desired", "timeline", "timeline/reference", "lanes", "findings", "report", "export", "compare"}

func TestPurePackagesReadNoClock(t *testing.T) {
	clocks := []string{"Now", "Since", "Until", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker", "Sleep"}
	for _, folder := range pureFolders {
		files, err := filepath.Glob(filepath.Join(folder, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: no files (%v)", folder, err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			fset := token.NewFileSet()
			f, err := parser.ParseFile(fset, file, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(f, func(n ast.Node) bool {
				sel, ok := n.(*ast.SelectorExpr)
				if !ok {
					return true
				}
				if x, ok := sel.X.(*ast.Ident); ok && x.Name == "time" && x.Obj == nil && slices.Contains(clocks, sel.Sel.Name) {
					t.Errorf("%s reads the clock: time.%s", fset.Position(n.Pos()), sel.Sel.Name)
				}
				return true
			})
		}
	}
}

func TestEveryFolderSaysWhatItHolds(t *testing.T) {
	for _, top := range []string{"cmd", "collect", "engine", "ui"} {
		err := filepath.WalkDir(filepath.Join("..", top), func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if d.Name() == "testdata" {
				return fs.SkipDir
			}
			if !d.IsDir() {
				return nil
			}
			files, err := filepath.Glob(filepath.Join(path, "*.go"))
			if err != nil || len(files) == 0 {
				return err
			}
			if _, err := os.Stat(filepath.Join(path, "doc.go")); err != nil {
				t.Errorf("%s has no doc.go", path)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
