// Package process runs other programs that must not outlive this one: each in a
// process group of its own, with its output as lines of a log, and killed by the
// kernel when this process ends, however it does.
//
// It imports the standard library only. Start with process.go; death_linux.go has what
// only Linux can do.
package process
