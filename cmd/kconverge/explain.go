package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/charmbracelet/x/term"
	"github.com/spf13/cobra"

	"github.com/kconverge/kconverge/engine/findings"
	"github.com/kconverge/kconverge/engine/report"
)

func newExplain() *cobra.Command {
	return &cobra.Command{
		Use:   "explain [CODE ...]",
		Short: "Say what a finding's code means, how it is recognised and what to do; without a code, list all",
		Example: `  kconverge explain
  kconverge explain KC302`,
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			var out []string
			for _, c := range findings.Codes() {
				out = append(out, c.ID+"\t"+c.Title)
			}
			return out, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(c *cobra.Command, args []string) error {
			w := c.OutOrStdout()
			if len(args) == 0 {
				for _, code := range findings.Codes() {
					if _, err := fmt.Fprintf(w, "%s  %-7s  %s\n", code.ID, code.Severity, code.Title); err != nil {
						return err
					}
				}
				return nil
			}
			width := 80
			if cols, _, err := term.GetSize(os.Stdout.Fd()); err == nil {
				width = min(cols, 100)
			}
			for i, id := range args {
				code := findings.Lookup(id)
				if code == nil {
					return exitf(exitUsage, "there is no code %q: kconverge explain lists all", id)
				}
				if i > 0 {
					fmt.Fprintln(w)
				}
				if err := explain(w, code, width); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

func explain(w io.Writer, c *findings.Code, width int) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s  %s\n", c.ID, c.Severity, c.Title)
	for _, part := range []struct{ title, text string }{
		{"What it is", c.Means}, {"How it is recognised", c.Seen}, {"What to do", c.Do},
	} {
		fmt.Fprintf(&b, "\n%s\n", part.title)
		for _, line := range report.Wrap(part.text, width-2) {
			fmt.Fprintf(&b, "  %s\n", line)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
