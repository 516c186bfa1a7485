package anonymise

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// kindOfName is what a replaced name is called. A name of several kinds has the
// first of them in this order.
type kindOfName uint8

const (
	namespace kindOfName = iota
	node
	service
	pod
	replicaSet
	object
	port
	zone
	labelKey
	uid
	id
	value
	word
)

var kindNames = [...]string{"ns", "node", "svc", "pod", "rs", "obj", "port", "zone", "key", "uid", "id", "value", "word"}

// names gives each name one in its place. There is one table for all kinds: a
// Service and its Endpoints, a node and its hostname label are recognised by having
// the same name.
type names struct {
	by    map[string]string
	kinds map[string]kindOfName
	taken map[string]bool // what was given
	// settled: what is met from now on is new, or was learnt.
	settled bool
	n       int
}

func newNames() names {
	return names{by: map[string]string{}, kinds: map[string]kindOfName{}, taken: map[string]bool{}}
}

// plain are names and values that every cluster has.
var plain = map[string]bool{
	"": true, "true": true, "false": true,
	"default": true, "kube-system": true, "kube-public": true, "kube-node-lease": true, "kubernetes": true,
}

// of gives the name in the place of s.
func (n *names) of(k kindOfName, s string) string {
	if plain[s] {
		return s
	}
	if was, ok := n.kinds[s]; !ok || k < was && !n.settled {
		n.kinds[s] = k
	}
	now, ok := n.by[s]
	if !ok {
		now = n.give(s)
		n.by[s] = now
	}
	return now
}

// give makes a name in the place of s. A ReplicaSet's is its Deployment's and its
// revision's, by which whoever reads it tells what it belongs to.
func (n *names) give(s string) string {
	if i := strings.LastIndexByte(s, '-'); n.kinds[s] == replicaSet && i > 0 && i < len(s)-1 {
		return n.of(object, s[:i]) + "-" + n.of(value, s[i+1:])
	}
	n.n++
	return n.free(n.kinds[s], n.n)
}

// knows tells that s was met as a name.
func (n *names) knows(s string) bool {
	k, ok := n.kinds[s]
	return ok && k != word
}

// settle gives all names that were met anew, by their order.
func (n *names) settle() {
	n.settled, n.n = true, 0
	clear(n.by)
	clear(n.taken)
	sorted := slices.Sorted(maps.Keys(n.kinds))
	for _, sets := range []bool{false, true} { // what sets are made of comes first
		for _, s := range sorted {
			if (n.kinds[s] == replicaSet) == sets {
				n.by[s] = n.give(s)
			}
		}
	}
}

// free makes a name that is nobody's, neither before nor after.
func (n *names) free(k kindOfName, number int) string {
	for mark := "x"; ; mark += "x" {
		s := fmt.Sprintf("%s-%s%05d%s", kindNames[k], mark, number, letters(number))
		if _, met := n.kinds[s]; !met && !n.taken[s] {
			n.taken[s] = true
			return s
		}
	}
}

// letters are some by which two names of neighbouring numbers differ in more than
// somebody mistypes.
func letters(number int) string {
	const alphabet = "bcdfghjklmnpqrstvwz"
	x := uint64(number) * 0x9E3779B97F4A7C15
	x ^= x >> 29
	var b strings.Builder
	for range 5 {
		b.WriteByte(alphabet[x%uint64(len(alphabet))])
		x /= uint64(len(alphabet))
	}
	return b.String()
}
