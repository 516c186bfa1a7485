package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/kconverge/kconverge/collect"
)

func main() {
	if code, done := guard(); done {
		os.Exit(code)
	}
	err := newRoot().Execute()
	if err != nil && err.Error() != "" {
		fmt.Fprintln(os.Stderr, "kconverge:", oneLine(err))
	}
	os.Exit(codeOf(err))
}

// oneLine writes an error, which may be several joined ones and may quote what a
// server said, on one line.
func oneLine(err error) string {
	return collect.Plain(strings.ReplaceAll(err.Error(), "\n", "; "))
}
