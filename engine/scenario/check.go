package scenario

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/kconverge/kconverge/engine/findings"
)

// Check is something about the model that holds or does not. Everything that is given
// must hold.
type Check struct {
	// That says it in words.
	That string `yaml:"that"`
	// Service is its name, or NAMESPACE/NAME; "web" when empty.
	Service string `yaml:"service"`
	// Since is a mark: paths, steps, events and connections from before it do not count.
	Since string `yaml:"since"`

	// State of the Service: converged, converging or stalled.
	State string `yaml:"state"`
	// Pods is how many pods should be routable now, Selected how many are selected,
	// Endpoints how many the legacy Endpoints have.
	Pods      *Count `yaml:"pods"`
	Selected  *Count `yaml:"selected"`
	Endpoints *Count `yaml:"endpoints"`
	// Truncated: the legacy Endpoints are cut.
	Truncated *bool        `yaml:"truncated"`
	Slices    *SlicesCheck `yaml:"slices"`
	Rules     *RulesCheck  `yaml:"rules"`
	Paths     *PathsCheck  `yaml:"paths"`
	Lag       *LagCheck    `yaml:"lag"`
	Risk      *RiskCheck   `yaml:"risk"`
	// Findings are codes that must be there, Without such that must not.
	Findings    List              `yaml:"findings"`
	Without     List              `yaml:"without"`
	Connections *ConnectionsCheck `yaml:"connections"`
	Reconcile   *StepsCheck       `yaml:"reconcile"`
	Syncs       *StepsCheck       `yaml:"syncs"`
	Events      *EventsCheck      `yaml:"events"`
	Official    *OfficialCheck    `yaml:"official"`
	// Together is how long old and new pods were routed to side by side.
	Together *Length `yaml:"together"`
	// LeftOut are the nodes that count no more, because they are not ready.
	LeftOut List `yaml:"leftOut"`
	// Unready is how many pods are selected and not ready, though not on their way out.
	Unready *Count `yaml:"unready"`
	// Answering is how many endpoints that can answer the worst node had at the worst
	// moment.
	Answering *Count `yaml:"answering"`
}

// SlicesCheck is about the Service's EndpointSlices now.
type SlicesCheck struct {
	Count *Count `yaml:"count"` // how many there are
	Have  *Count `yaml:"have"`  // routable endpoints
	Want  *Count `yaml:"want"`
	Total *Count `yaml:"total"` // endpoints, whatever their state
}

// RulesCheck is about nodes' rules now. Each of the nodes must satisfy it.
type RulesCheck struct {
	Node string `yaml:"node"` // a node, or all of them when empty
	Have *Count `yaml:"have"` // endpoints routed to
	Want *Count `yaml:"want"`
	// Behind: what it has is not what is wanted of it.
	Behind *bool `yaml:"behind"`
}

// PathFilter chooses paths.
type PathFilter struct {
	Op     string `yaml:"op"`
	Cause  string `yaml:"cause"`
	Status string `yaml:"status"`
	Pod    string `yaml:"pod"`  // its name
	By     string `yaml:"by"`   // part of it
	Node   string `yaml:"node"` // the pod\'s
	// On and HopStatus: that node\'s rules have a hop of that status.
	On        string `yaml:"on"`
	HopStatus string `yaml:"hopStatus"`
}

// PathsCheck counts paths.
type PathsCheck struct {
	PathFilter `yaml:",inline"`
	Count      *Count `yaml:"count"`
	// UIDs is of how many pods they are, by UID.
	UIDs *Count `yaml:"uids"`
}

// LagCheck is about how long one hop took on the paths.
type LagCheck struct {
	Of PathFilter `yaml:"of"`
	// Hop is slice, endpoints, a node's name, or "nodes" for every node; or ready:
	// from the start of the containers to readiness; or end: to the last arrival; or
	// claimed: from when the origin was seen to when its object says that it was.
	Hop string `yaml:"hop"`
	// From is origin (the default), slice: since the slice had it, or created: since
	// the pod was created.
	From string `yaml:"from"`
	// Worst and Best are the ranges of the longest and the shortest.
	Worst *Length `yaml:"worst"`
	Best  *Length `yaml:"best"`
	// Over is how much longer the worst is than the worst of the other nodes.
	Over *Length `yaml:"over"`
}

// RiskCheck is about how long new connections could go to pods that stop.
type RiskCheck struct {
	Of   PathFilter `yaml:"of"`
	From string     `yaml:"from"` // termination (the default), exit or wrong-pod
	// Worst is the longest; without any it is 0.
	Worst *Length `yaml:"worst"`
}

// ConnectionsCheck is about the traffic.
type ConnectionsCheck struct {
	Node   string `yaml:"node"` // from one node only
	OK     *Count `yaml:"ok"`
	Failed *Count `yaml:"failed"`
	// Unexplained are failures that lie in no risk window and have no other reason
	// that kconverge knows.
	Unexplained *Count `yaml:"unexplained"`
	// Pods is by how many pods they were answered.
	Pods *Count `yaml:"pods"`
}

// StepsCheck counts steps of the endpoint controllers or of a node's rule sync.
type StepsCheck struct {
	Controller string `yaml:"controller"`
	Node       string `yaml:"node"`
	Step       string `yaml:"step"`
	Count      *Count `yaml:"count"`
	// Anywhere: of all Services, and not of the check's alone.
	Anywhere bool `yaml:"anywhere"`
	// Took is how long the longest took: of started, the wait in the queue.
	Took *Length `yaml:"took"`
	// Queue is how long the queue was at most.
	Queue *Count `yaml:"queue"`
}

// EventsCheck counts Kubernetes Events.
type EventsCheck struct {
	Reason string `yaml:"reason"`
	Count  *Count `yaml:"count"`
}

// Count is a range of numbers: 3, ">=3", "<=5", 3..5.
type Count struct{ span }

// Length is a range of times: "<=2s", 5s..9s.
type Length struct{ span }

type span struct {
	min, max float64
	text     string
}

func (s span) String() string { return s.text }

func (s span) holds(x float64) bool { return x >= s.min && x <= s.max }

// UnmarshalYAML implements yaml.Unmarshaler.
func (c *Count) UnmarshalYAML(n *yaml.Node) (err error) {
	c.span, err = parseSpan(n, func(s string) (float64, error) {
		i, err := strconv.Atoi(s)
		return float64(i), err
	}, "a number: write 3, \">=3\", \"<=5\" or 3..5")
	return err
}

// UnmarshalYAML implements yaml.Unmarshaler.
func (l *Length) UnmarshalYAML(n *yaml.Node) (err error) {
	l.span, err = parseSpan(n, func(s string) (float64, error) {
		d, err := time.ParseDuration(s)
		return float64(d), err
	}, "a range of time: write \">=2s\", \"<=500ms\" or 2s..5s")
	return err
}

func parseSpan(n *yaml.Node, one func(string) (float64, error), want string) (span, error) {
	text := strings.ReplaceAll(n.Value, " ", "")
	out := span{min: math.Inf(-1), max: math.Inf(1), text: n.Value}
	lo, hi, two := strings.Cut(text, "..")
	switch {
	case two:
	case strings.HasPrefix(text, ">="):
		lo, hi = text[2:], ""
	case strings.HasPrefix(text, "<="):
		lo, hi = "", text[2:]
	default:
		hi = lo
	}
	var errs error
	if lo != "" {
		x, err := one(lo)
		out.min, errs = x, errors.Join(errs, err)
	}
	if hi != "" {
		x, err := one(hi)
		out.max, errs = x, errors.Join(errs, err)
	}
	if n.Kind != yaml.ScalarNode || errs != nil || lo == "" && hi == "" || out.min > out.max {
		return out, fmt.Errorf("line %d: %q is not %s", n.Line, n.Value, want)
	}
	return out, nil
}

var (
	states = []string{"", "converged", "converging", "stalled"}
	ops    = []string{"", "add", "remove", "change", "service"}
	hops   = "slice, endpoints, ready, end, nodes or a node's name"
)

func (c *Check) validate(marks []string) error {
	if !slices.Contains(marks, c.Since) {
		return fmt.Errorf("since: no step before this one marks %q", c.Since)
	}
	if !slices.Contains(states, c.State) {
		return fmt.Errorf("state: %q: choose converged, converging or stalled", c.State)
	}
	for _, code := range append(slices.Clone(c.Findings), c.Without...) {
		if findings.Lookup(code) == nil {
			return fmt.Errorf("no finding has the code %q: kconverge explain lists them", code)
		}
	}
	filters := []PathFilter{}
	if c.Paths != nil {
		filters = append(filters, c.Paths.PathFilter)
		if c.Paths.Count == nil && c.Paths.UIDs == nil {
			return errors.New("paths: give count or uids")
		}
	}
	if l := c.Lag; l != nil {
		filters = append(filters, l.Of)
		switch {
		case l.Hop == "":
			return errors.New("lag: hop is missing: choose " + hops)
		case l.Worst == nil && l.Best == nil && l.Over == nil:
			return errors.New("lag: give worst, best or over")
		case !slices.Contains([]string{"", "origin", "slice", "created"}, l.From):
			return fmt.Errorf("lag: from: %q: choose origin, slice or created", l.From)
		case l.Over != nil && !isNode(l.Hop):
			return fmt.Errorf("lag: over compares a node with the others, and hop is %q", l.Hop)
		}
	}
	if r := c.Risk; r != nil {
		filters = append(filters, r.Of)
		if r.Worst == nil || !slices.Contains([]string{"", "termination", "exit", "wrong-pod"}, r.From) {
			return errors.New("risk: give worst, and from as termination, exit or wrong-pod")
		}
	}
	if o := c.Official; o != nil {
		filters = append(filters, o.Of)
		if o.Known == nil && o.Missing == nil {
			return errors.New("official: give known or missing")
		}
	}
	for _, f := range filters {
		if !slices.Contains(ops, f.Op) {
			return fmt.Errorf("op: %q: choose add, remove, change or service", f.Op)
		}
	}
	if len(c.parts()) == 0 {
		return errors.New("it checks nothing")
	}
	return nil
}

// isNode reports that a hop is a node's name.
func isNode(hop string) bool {
	return !slices.Contains([]string{"slice", "endpoints", "ready", "end", "claimed", "nodes"}, hop)
}
