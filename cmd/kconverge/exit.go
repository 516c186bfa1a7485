package main

import (
	"errors"
	"fmt"
)

// Exit codes, the same for every command.
const (
	exitOK          = 0 // converged, or nothing found
	exitNot         = 1 // not converged in time, or findings
	exitUsage       = 2
	exitUnreachable = 3 // the source cannot be reached
	exitCannotTell  = 4 // blind or in a gap
	exitCommand     = 5 // run: the command itself failed
)

// exitError is an error with the code to exit with.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

// exitWith attaches a code to an error; nil stays nil.
func exitWith(code int, err error) error {
	if err == nil {
		return nil
	}
	return &exitError{code, err}
}

func exitf(code int, format string, args ...any) error {
	return &exitError{code, fmt.Errorf(format, args...)}
}

// codeOf gives the exit code of an error that a command returned.
func codeOf(err error) int {
	var e *exitError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &e):
		return e.code
	}
	return exitUsage
}
