package faults

import "strings"

// ClientOwn is the lab itself, whom no fault meets and no target names.
const ClientOwn = "own"

// agentPrefix begins the user agents of the lab's parts.
const agentPrefix = "kconverge-lab/"

// UserAgent is how one of the lab's clients presents itself to the API server.
func UserAgent(client string) string { return agentPrefix + client }

// NodeProxyAgent is how the watch of one node's proxy does.
func NodeProxyAgent(node string) string { return agentPrefix + ClientProxy + "." + node }

// clientOf tells which client a user agent is, and of which node; "" for one of those
// that targets do not name.
func clientOf(agent string) (client, node string) {
	if name, ok := strings.CutPrefix(agent, agentPrefix); ok {
		client, node, _ = strings.Cut(name, ".")
		return client, node
	}
	switch {
	case strings.HasPrefix(agent, "kconverge/"):
		return ClientViewer, ""
	case strings.HasPrefix(agent, "kubectl"):
		return ClientKubectl, ""
	}
	return "", ""
}
