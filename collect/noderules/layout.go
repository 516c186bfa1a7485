package noderules

import "github.com/kconverge/kconverge/collect"

// layout is one way in which a service proxy writes its rules. Layouts are
// listed in layouts; each has a file of its own.
type layout struct {
	// name is what collect.Rules.Layout says.
	name string
	// tables are the tables that the layout lives in.
	tables []tableKey
	// open starts a resolver of one of those tables.
	open func(tableKey) resolver
	// joint stands instead of open where what is said about one Service port
	// stands in several tables: the resolvers that the returned function opens
	// share what they know. known are Service ports whose names may be missing
	// from the rules.
	joint func(known []kpPort) func(tableKey) resolver
	// xt says that the rules are those of iptables (xtRule).
	xt bool
	// polled says that the tables are none of nf_tables: somebody has to look.
	polled bool
}

// opener is what opens the resolvers of one tracker.
func (l layout) opener(known []kpPort) func(tableKey) resolver {
	if l.joint != nil {
		return l.joint(known)
	}
	return l.open
}

// resolver follows one table and says what its rules do. It keeps the last
// resolution, and is not safe for concurrent use.
type resolver interface {
	// resolve brings the resolution up to date with t, of which what changed
	// since the last call, and returns the complete new state of each port
	// that differs from the last resolution, in any order. A port that went is
	// returned with Empty() true.
	resolve(t *table, what touched) []collect.RulePort
	// ports returns every port that is not empty, in any order.
	ports() []collect.RulePort
	// unknown returns what could not be tied to a Service, in any order.
	unknown() []string
	// present tells whether the table has anything of the layout.
	present(t *table) bool
	// size is the number of ports.
	size() int
}

// settler is a resolver that says with settle, once for each generation and
// after resolve was called for all tables, what resolve returns otherwise.
type settler interface{ settle() []collect.RulePort }

// ignorer is a resolver that counts the rules of others in its tables.
type ignorer interface{ ignored() int }

func (r *kubeProxy) present(t *table) bool { return t.exists }
func (r *kubeProxy) size() int             { return len(r.current) }
func (r *flat) present(t *table) bool      { return t.exists }
func (r *flat) size() int                  { return len(r.current) }

// layouts is the registry. The first one with Service ports is the one that a
// node's rules are told of (see shown.go).
var layouts = []layout{kubeProxyNFTables, flatLayout, kubeProxyIPTablesNFT, kubeProxyIPTablesLegacy}

// layoutOf finds the layout that claims a table of nf_tables.
func layoutOf(key tableKey) (layout, bool) {
	for _, l := range layouts {
		if l.polled {
			continue
		}
		for _, k := range l.tables {
			if k == key {
				return l, true
			}
		}
	}
	return layout{}, false
}
