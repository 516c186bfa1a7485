package timeline

import (
	"slices"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/engine/desired"
)

// ruleClass is what the rules of a set of nodes should hold for one Service.
// Without Local policies, hints and source ranges all nodes are one class. Two
// classes of a Service with the same content are the same pointer.
type ruleClass struct {
	want  map[EndpointID]val
	ports []collect.RulePort
	// fronts are the frontends of ports, front their value, once told is set.
	fronts []front `graph:"-"`
	front  val     `graph:"-"`
	told   bool    `graph:"-"`
	// rooted are the cells that stand for what is wanted, see plane.root.
	rooted map[EndpointID]*cell `graph:"-"`
}

// classes are the ruleClasses of a Service as it is now. They are told anew
// after anything that they are computed from has changed (unclass).
type classes struct {
	perNode bool
	// named: a node's name decides, not only its zone. locals are the nodes
	// that have endpoints of their own under a Local policy; nil without one.
	named  bool
	locals map[string]bool
	by     map[classKey]*ruleClass
}

// classKey is what of a node its class depends on.
type classKey struct{ name, zone string }

// unclass makes the classes be told anew. The old ones stay with the planes that
// have them until these are compared again, and are found again when nothing
// has changed.
func (s *service) unclass() {
	if s.classes == nil {
		return
	}
	s.oldClasses = s.oldClasses[:0]
	for _, c := range s.classes.by {
		s.oldClasses = append(s.oldClasses, c)
	}
	s.classes = nil
}

// perNode reports that nodes differ in what they should hold.
func (s *service) perNode() bool { return s.classified().perNode }

func (s *service) classified() *classes {
	if s.classes != nil {
		return s.classes
	}
	c := &classes{by: map[classKey]*ruleClass{}}
	s.classes = c
	if !s.exists {
		return c
	}
	local := s.spec.InternalPolicy == string(collect.PolicyLocal) || s.spec.ExternalPolicy == string(collect.PolicyLocal)
	// The node's own address is let through to a load balancer's address by
	// some source ranges.
	c.named = len(s.spec.SourceRanges) > 0 && len(s.spec.LoadBalancerIPs) > 0
	c.perNode = local || c.named
	if local {
		c.locals = map[string]bool{}
	}
	for _, sl := range s.epSlice {
		for i := range sl.slice.Endpoints {
			e := &sl.slice.Endpoints[i]
			if local {
				c.locals[e.Node] = true
			}
			c.named = c.named || len(e.HintNodes) > 0
			c.perNode = c.perNode || len(e.HintNodes) > 0 || len(e.HintZones) > 0
		}
	}
	return c
}

// classOf is what the rules of a node should hold for the Service now.
func (s *service) classOf(node string) *ruleClass {
	all := s.classified()
	ref := s.m.nodeRef(node)
	var key classKey
	if all.perNode {
		key.zone = ref.Zone
		if all.named || all.locals[node] {
			key.name = node
		}
	}
	c := all.by[key]
	if c == nil {
		c = &ruleClass{}
		if s.exists {
			c.ports = desired.Rules(desired.ServiceRef{Namespace: s.namespace, Name: s.name, Service: s.spec}, s.sliceObjects(), ref)
		}
		c.want = s.foldRules(c.ports)
		c = all.known(c, s.oldClasses)
		all.by[key] = c
	}
	return c
}

// known finds the class with the same content, or gives c back.
func (all *classes) known(c *ruleClass, old []*ruleClass) *ruleClass {
	for _, x := range all.by {
		if x.same(c) {
			return x
		}
	}
	for _, x := range old {
		if x.same(c) {
			return x
		}
	}
	return c
}

func (c *ruleClass) same(o *ruleClass) bool {
	if !samePorts(c.ports, o.ports) || len(c.want) != len(o.want) {
		return false
	}
	for id, v := range c.want {
		if o.want[id] != v {
			return false
		}
	}
	return true
}

// samePorts compares sorted lists.
func samePorts(a, b []collect.RulePort) bool {
	if len(a) == len(b) && len(a) > 0 && &a[0] == &b[0] {
		return true
	}
	return slices.EqualFunc(a, b, func(x, y collect.RulePort) bool { return x.Equal(&y) })
}
