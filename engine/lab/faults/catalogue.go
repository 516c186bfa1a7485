package faults

// catalogue has all faults.
var catalogue = []Definition{
	{
		Name: "sync-delay", Value: "DURATION", Target: "NODE", Example: "sync-delay=5s@node-2",
		Does:   "each rule sync of the node takes that much longer, as kube-proxy's does with very many rules or a busy kernel lock",
		See:    "the node's lane goes on differing (Timeline, Nodes); its syncs take longer (Engine)",
		amount: anyDuration, target: ofNodes,
	},
	{
		Name: "sync-fail", Value: "on|PERCENT", Target: "NODE", Example: "sync-fail=on@node-2",
		Does:   "rule syncs of the node fail; kube-proxy tries again after 30 s, then in full",
		See:    "failed syncs on the node's lane, and rules that stay as they were until one succeeds",
		amount: shareOf, target: ofNodes,
	},
}
