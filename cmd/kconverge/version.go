package main

import (
	"fmt"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is set by the linker for releases.
var version = ""

// toolVersion is the release, or the commit that was built.
func toolVersion() string {
	switch commit := built("vcs.revision"); {
	case version != "":
		return version
	case len(commit) >= 12:
		return "devel-" + commit[:12]
	}
	return "devel"
}

// exactVersion is toolVersion where it tells the program from every other one, or else
// empty: what is built of files that were changed has the version of those before.
func exactVersion() string {
	switch {
	case version != "":
		return version
	case built("vcs.modified") == "false":
		return built("vcs.revision")
	}
	return ""
}

// built is what the program was built with, by the name of a setting; empty when nothing
// is known.
func built(setting string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, s := range info.Settings {
		if s.Key == setting {
			return s.Value
		}
	}
	return ""
}

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(c.OutOrStdout(), "kconverge", toolVersion())
			return exitWith(exitNot, err)
		},
	}
}
