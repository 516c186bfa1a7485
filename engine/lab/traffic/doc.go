// Package traffic opens connections from inside each node of the lab to each Service,
// at its ClusterIP and at its NodePort, through the node's own rules in the kernel, at a
// set rate, and tells what became of them: in a collect.Connections for each node and
// address of a Service port a second, and in a collect.ConnectionFailed for each that
// failed.
//
// It knows a node by its name and a DialFrom into its network namespace. It may import
// collect and client-go, and knows nothing of the rules, the pods or the model: which
// pod a connection went to it has from the answer alone.
//
// Start with traffic.go; client.go is one connection, ports.go where it comes from,
// tally.go what is counted.
package traffic
