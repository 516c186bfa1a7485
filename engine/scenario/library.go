package scenario

import (
	"embed"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

//go:embed scenarios/*.yaml
var files embed.FS

// TourName is the scenario that lab --tour plays.
const TourName = "tour"

// All are the scenarios that come with the program, by name. An error is one of theirs.
func All() (out []*Scenario, err error) {
	names, err := fs.Glob(files, "scenarios/*.yaml")
	if err != nil {
		return nil, err
	}
	for _, n := range names {
		s, err := embedded(n)
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}

func embedded(path string) (*Scenario, error) {
	content, err := files.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return Parse(path, content)
}

// Open finds a scenario by its name among those that come with the program, or reads a
// file.
func Open(what string) (*Scenario, error) {
	if !strings.ContainsAny(what, "/.") {
		if _, err := files.ReadFile("scenarios/" + what + ".yaml"); err == nil {
			return embedded("scenarios/" + what + ".yaml")
		}
	}
	content, err := os.ReadFile(what)
	if err == nil {
		return Parse(what, content)
	}
	if !strings.ContainsAny(what, "/.") {
		return nil, fmt.Errorf("no scenario is called %q, and there is no such file: kconverge lab scenarios lists them", what)
	}
	return nil, fmt.Errorf("scenario: %w", err)
}

// Text is the file of a scenario that comes with the program.
func Text(name string) (string, error) {
	content, err := files.ReadFile("scenarios/" + name + ".yaml")
	if err != nil {
		return "", fmt.Errorf("no scenario is called %q: kconverge lab scenarios lists them", name)
	}
	return string(content), nil
}
