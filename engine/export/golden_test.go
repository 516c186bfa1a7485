package export

import (
	"bytes"
	"flag"
	"io"
	"os"
	"path/filepath"
	"testing"
)

var update = flag.Bool("update", false, "write the files in testdata/export anew")

// golden compares an export with its file.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("../../testdata/export", name)
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(want, got) {
		t.Errorf("%s differs (go test ./engine/export -update writes it anew):\n%s", file, got)
	}
}

// The scenarios that are kept as files: a scale up and down, a gap, findings, two families.
var kept = []string{"scale-4-to-7-to-5", "gap-in-rules", "finding-selection", "dual-stack"}

func TestExportsLookAsTheyWereApproved(t *testing.T) {
	all := scenarios(t)
	for _, name := range kept {
		d := document(t, all[name])
		for ending, write := range map[string]func(io.Writer) error{"csv": d.CSV, "md": d.Markdown} {
			var b bytes.Buffer
			if err := write(&b); err != nil {
				t.Fatal(err)
			}
			golden(t, name+"."+ending, b.Bytes())
		}
	}
}
