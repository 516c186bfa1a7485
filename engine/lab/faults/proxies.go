package faults

// The proxies of all nodes share one watch. The watch of one node can only be hung
// when it is a watch of its own: the lab gives it one when a fault asks for it.

// watchFaults are those that act on watches.
var watchFaults = []string{"watch-drop", "watch-delay", "watch-hang"}

// WantsOwnWatch reports that a fault means the watch of the node's proxy alone.
func (f *Faults) WantsOwnWatch(node string) bool {
	for _, name := range watchFaults {
		for _, t := range f.of(name) {
			for _, n := range t.target.nodes {
				if n == node {
					return true
				}
			}
		}
	}
	return false
}

// Joined says that the proxy of a node has its own watch, which was listed: from now
// on faults reach it.
func (f *Faults) Joined(node string) {
	f.joinedMu.Lock()
	f.joined[node] = true
	f.joinedMu.Unlock()
	f.checkStreams()
}

// joining reports that a node's own watch has not been listed yet.
func (f *Faults) joining(node string) bool {
	if node == "" {
		return false
	}
	f.joinedMu.Lock()
	defer f.joinedMu.Unlock()
	return !f.joined[node]
}
