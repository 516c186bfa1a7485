// Command pod is what runs in the containers of engine/cluster's real node: "pod
// pause" holds a pod's namespaces, "pod serve" is an HTTP server that can be probed.
// It imports the standard library only.
package main
