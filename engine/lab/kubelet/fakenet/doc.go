// Package fakenet is a node's network in memory, a kubelet.Sandbox for tests: no
// namespaces, no sockets, and nothing that keeps testing/synctest from advancing
// its clock. Connections are net.Pipe pairs. It may import kubelet only.
package fakenet
