package faults

const requestTarget = "verb=V,resource=R,name=N,client=C"

// catalogue has all faults.
var catalogue = []Definition{
	{
		Name: "api-delay", Value: "DURATION", Target: requestTarget, Example: "api-delay=800ms@verb=update,resource=endpointslices",
		Does:   "the API server answers requests that much later (watches go on, unless verb=watch is named; viewers only where client=viewer is)",
		See:    "slices that are written late (Path), syncs of the reconciler that take longer (Engine); kubectl waits too",
		amount: anyDuration, target: ofRequests, OwnPlane: true,
	},
	{
		Name: "api-error", Value: "CODE[:PERCENT]", Target: requestTarget, Example: "api-error=503:50%@client=reconciler",
		Does:   "the API server answers requests with that status: 429, 500, 502, 503 or 504; 410 only to watches that are begun again, after which clients list anew",
		See:    "retries of the reconciler; pods that stay as they were; kubectl prints the error",
		amount: codeAndShare, target: ofRequests, OwnPlane: true,
	},
	{
		Name: "conflict", Value: "on|PERCENT", Target: requestTarget, Example: "conflict=70%@resource=endpointslices",
		Does:   "another writer changes the object between somebody's read and update, so that the update is a real conflict (409); of EndpointSlices, unless a resource is named",
		See:    "conflicts and retries on the reconciler's row, slices that are written late; kubectl replace prints the conflict",
		amount: shareOf, target: ofRequests, OwnPlane: true,
	},
	{
		Name: "watch-hang", Value: "on", Target: "CLIENT or NODE or resource=R,client=C", Example: "watch-hang=on@node-2",
		Does:   "watches stay open and bring nothing; when it is cleared they bring what was held back. A NODE means its proxy's watch",
		See:    "a node, or all, that does not hear of changes: no sync is even asked for, and nothing looks broken",
		amount: onOnly, target: ofWatches, OwnPlane: true,
	},
	{
		Name: "watch-delay", Value: "DURATION", Target: "CLIENT or NODE or resource=R,client=C", Example: "watch-delay=3s@reconciler",
		Does:   "what watches bring comes that much later, in its order",
		See:    "the hop after the client is late by it (Path)",
		amount: anyDuration, target: ofWatches, OwnPlane: true,
	},
	{
		Name: "watch-drop", Value: "on|EVERY", Target: "CLIENT or NODE or resource=R,client=C", Example: "watch-drop=5s@proxy",
		Does:   "watches break: at once and each time they are tried again, or when they are EVERY old",
		See:    "clients that list and watch again, and are late by as much",
		amount: onOrEvery, target: ofWatches, OwnPlane: true,
	},
	{
		Name: "reconcile-delay", Value: "DURATION", Target: "SERVICE", Example: "reconcile-delay=2s@web",
		Does:   "each sync of the EndpointSlice and Endpoints controllers takes that much longer",
		See:    "slices that are written late; with many Services a queue that grows (Engine)",
		amount: anyDuration, target: ofServices, OwnPlane: true,
	},
	{
		Name: "reconcile-fail", Value: "on|PERCENT", Target: "SERVICE", Example: "reconcile-fail=on@web",
		Does:   "syncs of these controllers fail, and are tried again after 1, 2, 4 … seconds, 15 times",
		See:    "retries on the reconciler's row, slices that stay as they were",
		amount: shareOf, target: ofServices, OwnPlane: true,
	},
	{
		Name: "event-lost", Value: "on|PERCENT", Target: "SERVICE", Example: "event-lost=on@web",
		Does:   "these controllers do not notice that pods changed, until something else makes them look",
		See:    "slices that stay as they were with nothing in the queue, until the next resync or change of the Service",
		amount: shareOf, target: ofServices, OwnPlane: true,
	},
	{
		Name: "workers", Value: "NUMBER", Example: "workers=1",
		Does:   "each of these controllers has that many workers in the place of 5",
		See:    "the wait in the queue (Engine, Path)",
		amount: countTo(100), target: nowhere, OwnPlane: true,
	},
	{
		Name: "resync", Value: "DURATION", Example: "resync=30s",
		Does:   "these controllers look at every Service that often, in the place of every 12 hours",
		See:    "syncs without a change (Engine); what was lost is made good",
		amount: anyDuration, target: nowhere, OwnPlane: true,
	},
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
	{
		Name: "probe-period", Value: "DURATION", Target: "PODS", Example: "probe-period=10s@web",
		Does:   "the kubelet probes that seldom or often, from each probe's next run on",
		See:    "pods that become ready, or unready, late; the hops before ready on the Path",
		amount: anyDuration, target: ofPods,
	},
	{
		Name: "probe-fail", Value: "on|PERCENT|EVERY", Target: "PODS", Example: "probe-fail=10s@web",
		Does:   "readiness probes fail: always, a share of them, or for EVERY and then not for EVERY, by turns. The pods answer all the same",
		See:    "pods that become unready after their failure threshold, and endpoints that come and go",
		amount: shareOrEvery, target: ofPods,
	},
	{
		Name: "start-delay", Value: "DURATION", Target: "PODS", Example: "start-delay=5s@web",
		Does:   "containers that are started from now on start that much later",
		See:    "the hop from scheduled to started on the Path",
		amount: anyDuration, target: ofPods,
	},
	{
		Name: "listen-delay", Value: "DURATION", Target: "PODS", Example: "listen-delay=20s@web",
		Does:   "programs that are started from now on listen that much later",
		See:    "failed probes, and the hop from started to ready on the Path",
		amount: anyDuration, target: ofPods,
	},
	{
		Name: "prestop", Value: "DURATION", Target: "PODS", Example: "prestop=200ms@web",
		Does:   "the preStop hook takes that long, whatever the pod says, within its grace period",
		See:    "risk windows that are as long as the nodes are later than that",
		amount: anyDuration, target: ofPods,
	},
	{
		Name: "stop-early", Value: "on", Target: "PODS", Example: "stop-early=on@web",
		Does:   "containers end at the moment they are told to, without preStop or a last second of service",
		See:    "a risk window on every node with each pod that goes; connections are refused in it",
		amount: onOnly, target: ofPods,
	},
	{
		Name: "node-death", Value: "on", Target: "NODE", Example: "node-death=on@node-2",
		Does:   "the node is as without power: its kubelet and proxy do nothing, packets to it and its pods vanish. When it is cleared the node is back as after a partition",
		See:    "kubectl get nodes says NotReady after 50 s (see node-grace); until then its pods are routed and nobody answers",
		amount: onOnly, target: ofNodes,
	},
	{
		Name: "node-grace", Value: "DURATION", Example: "node-grace=15s",
		Does:   "nodes count as not ready when they were silent that long, in the place of 50 s. They renew their leases every 10 s",
		See:    "how soon a dead node's pods leave the slices",
		amount: anyDuration, target: nowhere, OwnPlane: true,
	},
	{
		Name: "clock-skew", Value: "[-]DURATION", Target: "NODE", Example: "clock-skew=3s@node-2",
		Does:   "the node's clock is ahead by that, or behind: in the conditions of its pods, their starts, its lease, and so in the trigger time of slices; and in when its rules changed, as an agent there would tell",
		See:    "claimed times beside the observed ones that cannot be true; the official numbers are off by it. Lags are not: the clock is found to be off, and what is left is told as an error (Nodes)",
		amount: eitherWay, target: ofNodes,
	},
	{
		Name: "address-reuse", Value: "on", Target: "NODE", Example: "address-reuse=on",
		Does:   "a node gives the next pod the address that came back last, in the place of the one that has been free for the longest",
		See:    "handed-over removals and already-routed additions: for a time the old rule leads to the new pod",
		amount: onOnly, target: ofNodes,
	},
}
