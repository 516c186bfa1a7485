// Command kconverge shows how a Kubernetes Service converges.
//
// Each command stands in a file of its own and turns flags into a
// configuration, a session (session.go) and an exit code (exit.go). main.go
// starts with guard.go: a small parent process that holds the terminal's state
// and restores it whatever becomes of the program.
package main
