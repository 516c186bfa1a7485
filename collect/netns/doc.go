// Package netns runs code inside another namespace, on a thread that is thrown
// away afterwards. It is what the readers and writers of a node's rules and the
// lab's nodes have in common.
//
// It may import the standard library and golang.org/x/sys only. Everything is
// in netns_linux.go; there is nothing of it on other systems.
package netns
