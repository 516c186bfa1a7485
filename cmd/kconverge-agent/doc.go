// Command kconverge-agent reads the kernel rules of the node it runs on and
// prints them as JSON lines: to a pod's log, a file or a pipe. kconverge watch
// follows them.
//
// It is a static binary without the lab, the screens or client-go; package
// collect/agent does the work.
package main
