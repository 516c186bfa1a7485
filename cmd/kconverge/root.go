package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// newRoot is the command tree. Without a command it watches.
func newRoot() *cobra.Command {
	root := newWatch()
	root.Use = "kconverge [svc/NAME ...]"
	root.Short = "Show how Kubernetes Services converge: pods, EndpointSlices and every node's rules on one time axis"
	root.Args = func(_ *cobra.Command, args []string) error {
		for _, a := range args {
			if !strings.Contains(a, "/") {
				return exitf(exitUsage, "unknown command %q: kconverge --help lists them; a Service is named svc/%s", a, a)
			}
		}
		return nil
	}
	root.SilenceUsage, root.SilenceErrors = true, true
	printConfig := root.Flags().Bool("print-config", false, "print the configuration, of the file or the defaults, with every action's keys, and stop")
	observe := root.RunE
	root.RunE = func(c *cobra.Command, args []string) error {
		if !*printConfig {
			return observe(c, args)
		}
		config, err := loadConfig(os.Getenv)
		if err != nil {
			return exitWith(exitUsage, err)
		}
		return config.print(c.OutOrStdout())
	}
	watch := newWatch()
	root.AddCommand(
		watch, newLab(), newRunCommand(), newWait(), newCheck(), newExplain(),
		newRecord(), newReplay(), newExport(), newAnonymise(), newDiff(),
		newAgent(), newInfo(), newVersion(),
	)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return exitWith(exitUsage, flagError(err)) })
	return root
}

// flagError says what a flag takes, in place of what the parser of numbers said.
func flagError(err error) error {
	var bad *pflag.InvalidValueError
	if !errors.As(err, &bad) {
		return err
	}
	takes, ok := map[string]string{
		"int": "a whole number", "int64": "a whole number", "uint": "a whole number", "float64": "a number",
		"duration": "a time such as 500ms, 10s or 2m", "bool": "true or false",
	}[bad.GetFlag().Value.Type()]
	if !ok {
		return err
	}
	return fmt.Errorf("--%s %q: it takes %s", bad.GetFlag().Name, bad.GetValue(), takes)
}
