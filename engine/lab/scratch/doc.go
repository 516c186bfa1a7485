// Package scratch gives a directory that leaves nothing behind, however the
// process ends: a file system in memory that is mounted nowhere, or, where that is
// refused, a locked temporary directory that the next start removes. Children can
// be given it.
//
// It may import the standard library, golang.org/x/sys and collect/netns. Start
// with scratch.go; memory_linux.go makes the one, lock_unix.go holds the other.
package scratch
