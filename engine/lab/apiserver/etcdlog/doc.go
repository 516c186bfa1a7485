// Package etcdlog takes etcd's client off the terminal.
//
// k8s.io/apiserver makes the client's logger while it initializes, from the
// defaults of logutil, and offers no way to replace it: it writes warnings to
// standard error, over whatever a screen shows there. This package changes the
// defaults before they are read. That holds by the order in which Go
// initializes packages, sorted by import path among those whose imports are
// ready (Go specification, "Program initialization"): this one needs logutil,
// as k8s.io/apiserver does, and sorts before it.
//
// It must import little, or it would come too late; a test of package apiserver
// would notice.
package etcdlog
