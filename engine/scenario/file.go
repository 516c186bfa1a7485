package scenario

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/kconverge/kconverge/engine/lab/faults"
)

// Scenario is one file.
type Scenario struct {
	// Name is what --scenario takes; that of the file without ".yaml" when empty.
	Name string `yaml:"name"`
	// Title is one line for the list.
	Title string `yaml:"title"`
	// About tells more; it is printed and shown when the scenario begins.
	About string `yaml:"about"`
	// Reports are public reports of people who met it, as OWNER/REPOSITORY#NUMBER.
	Reports List `yaml:"reports"`
	// Nodes is how many nodes the lab has; 3 when 0.
	Nodes int `yaml:"nodes"`
	// Traffic is how many connections a second each node opens to each Service from
	// the start; 0 for none.
	Traffic int `yaml:"traffic"`
	// Kernel: it needs real network namespaces, because packets must flow.
	Kernel bool `yaml:"kernel"`
	// Alone: it loads the machine, so that tests play nothing beside it.
	Alone bool `yaml:"alone"`
	// Heavy: it takes minutes and much memory, so that tests play it in the long run
	// alone.
	Heavy bool   `yaml:"heavy"`
	Steps []Step `yaml:"steps"`
}

// Step is one thing to do. Exactly one of the fields of the first group is set; those
// of the second say more about it.
type Step struct {
	// Chapter begins a chapter: a tour stops there for a key.
	Chapter string `yaml:"chapter"`
	// Say is narration.
	Say string `yaml:"say"`
	// Kubectl is a command line of kubectl's without "kubectl", of those that
	// kubectl.go understands.
	Kubectl string `yaml:"kubectl"`
	// Deploy makes a workload and its Service out of a few words.
	Deploy *Deploy `yaml:"deploy"`
	// Apply are manifests, as kubectl apply takes them.
	Apply string `yaml:"apply"`
	// Fault sets faults of the lab, "NAME=AMOUNT@TARGET"; Clear clears them, by
	// NAME or NAME@TARGET, or all of them with "all".
	Fault List `yaml:"fault"`
	Clear List `yaml:"clear"`
	// Traffic sets the rate of connections.
	Traffic *int `yaml:"traffic"`
	// Controller runs a custom controller from here to the end.
	Controller *Controller `yaml:"controller"`
	// Wait waits until everything is "converged" (and the workloads settled), or for
	// a length of time.
	Wait string `yaml:"wait"`
	// Until waits until a check holds.
	Until *Check `yaml:"until"`
	// Mark names this moment, for the checks' since.
	Mark string `yaml:"mark"`
	// Expect is checked here and goes into the verdict.
	Expect *Check `yaml:"expect"`

	// Cause: the step is what the expectations are about. It is left out of the
	// control run, in which they must fail. A fault is a cause unless it says false.
	Cause *bool `yaml:"cause"`
	// Instead: the step is taken in the control run alone.
	Instead bool `yaml:"instead"`
	// Within is how long to wait at most; 3 minutes when empty.
	Within Duration `yaml:"within"`

	line int
}

// Deploy is a workload of servers and its Service, in a few words.
type Deploy struct {
	Name string `yaml:"name"`
	// Kind is Deployment (the default), StatefulSet or DaemonSet.
	Kind     string `yaml:"kind"`
	Replicas int32  `yaml:"replicas"`
	// Probe is the period of a readiness probe over HTTP, in whole seconds; none
	// when 0.
	Probe Duration `yaml:"probe"`
	// Failures is how many probes in a row must fail; 3 when 0.
	Failures int32 `yaml:"failures"`
	// Grace is the termination grace period (30 s), Serve for how long the program
	// goes on serving after SIGTERM (1 s; "0s" for not at all), PreStop a sleep
	// before that.
	Grace   Duration  `yaml:"grace"`
	Serve   *Duration `yaml:"serve"`
	PreStop Duration  `yaml:"preStop"`
	// Surge and Unavailable are those of a Deployment's rolling update.
	Surge       *int32   `yaml:"surge"`
	Unavailable *int32   `yaml:"unavailable"`
	MinReady    Duration `yaml:"minReady"`
	// Gate is a readiness gate's condition type.
	Gate string `yaml:"gate"`
	// Node is where all pods go; anywhere when empty.
	Node        string `yaml:"node"`
	HostNetwork bool   `yaml:"hostNetwork"`
	// TargetPort is the Service's: a number or a port's name; 8080 when empty.
	TargetPort string `yaml:"targetPort"`
	// Selector is the Service's, app=NAME when empty.
	Selector map[string]string `yaml:"selector"`
	// NoService leaves the Service out.
	NoService bool `yaml:"noService"`
	// Local sets the policy internalTrafficPolicy or externalTrafficPolicy to
	// Local: "internal" or "external".
	Local string `yaml:"local"`
}

// List is one text or several.
type List []string

// UnmarshalYAML implements yaml.Unmarshaler.
func (l *List) UnmarshalYAML(n *yaml.Node) error {
	var one string
	if n.Kind == yaml.ScalarNode {
		if err := n.Decode(&one); err != nil {
			return err
		}
		*l = List{one}
		return nil
	}
	var all []string
	err := n.Decode(&all)
	*l = all
	return err
}

// Duration is a length of time as Go writes it: "500ms", "2s", "1m30s".
type Duration time.Duration

// UnmarshalYAML implements yaml.Unmarshaler.
func (d *Duration) UnmarshalYAML(n *yaml.Node) error {
	x, err := time.ParseDuration(n.Value)
	if n.Kind != yaml.ScalarNode || err != nil || x < 0 {
		return fmt.Errorf("line %d: %q is no length of time: write 500ms, 2s or 1m30s", n.Line, n.Value)
	}
	*d = Duration(x)
	return nil
}

// Defaults.
const (
	defaultNodes  = 3
	defaultWithin = 3 * time.Minute
	maxNodes      = 50
	// MaxTraffic is the most connections a second from each node to each Service.
	MaxTraffic = 200
)

// Parse reads a scenario. from names it in errors, which tell the line.
func Parse(from string, content []byte) (*Scenario, error) {
	dec := yaml.NewDecoder(bytes.NewReader(content))
	dec.KnownFields(true)
	s := &Scenario{}
	if err := dec.Decode(s); err != nil {
		if errors.Is(err, io.EOF) {
			err = errors.New("it is empty: it needs a title and steps")
		}
		return nil, fmt.Errorf("scenario %s: %s", from, plainYAML(err))
	}
	if err := dec.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("scenario %s: a file holds one scenario: take the second document (after ---) into a file of its own", from)
	}
	s.lines(content)
	if s.Name == "" {
		s.Name = strings.TrimSuffix(from[strings.LastIndexByte(from, '/')+1:], ".yaml")
	}
	if s.Nodes == 0 {
		s.Nodes = defaultNodes
	}
	if err := s.validate(); err != nil {
		return nil, fmt.Errorf("scenario %s: %w", from, err)
	}
	return s, nil
}

// plainYAML makes the library's words plainer.
func plainYAML(err error) string {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	text = strings.TrimPrefix(text, "unmarshal errors:\n  ")
	for _, x := range [][2]string{
		{"into scenario.Count", "for a number: write 3, \">=3\", \"<=3\" or 3..5"},
		{" in type scenario.Scenario", " in a scenario"}, {" in type scenario.Step", " in a step"},
		{" in type scenario.Deploy", " in deploy"}, {" in type scenario.", " in "},
		{"into scenario.", "into "}, {"\n  ", "; "},
	} {
		text = strings.ReplaceAll(text, x[0], x[1])
	}
	if strings.Contains(text, "not found") {
		text += " (the README's section on scenarios lists what there is)"
	}
	return text
}

// lines notes where each step begins, for errors.
func (s *Scenario) lines(content []byte) {
	var doc yaml.Node
	if yaml.Unmarshal(content, &doc) != nil || len(doc.Content) == 0 {
		return
	}
	top := doc.Content[0].Content
	for i := 0; i+1 < len(top); i += 2 {
		if top[i].Value != "steps" {
			continue
		}
		for k, n := range top[i+1].Content {
			if k < len(s.Steps) {
				s.Steps[k].line = n.Line
			}
		}
	}
}

// report is how a public report is named.
var report = regexp.MustCompile(`^[\w.-]+/[\w.-]+#\d+$`)

func (s *Scenario) validate() error {
	switch {
	case s.Title == "":
		return errors.New("title is missing: one line that says what it shows")
	case slices.ContainsFunc(s.Reports, func(r string) bool { return !report.MatchString(r) }):
		return fmt.Errorf("reports: %s: write each as kubernetes/kubernetes#76338", strings.Join(s.Reports, ", "))
	case s.Nodes < 1 || s.Nodes > maxNodes:
		return fmt.Errorf("nodes: %d: choose 1 to %d", s.Nodes, maxNodes)
	case s.Traffic < 0 || s.Traffic > MaxTraffic:
		return fmt.Errorf("traffic: %d: choose 0 to %d connections a second", s.Traffic, MaxTraffic)
	case len(s.Steps) == 0:
		return errors.New("steps are missing")
	}
	marks := []string{""}
	for i := range s.Steps {
		st := &s.Steps[i]
		err := st.validate(marks)
		if err != nil {
			return fmt.Errorf("line %d: step %d: %w", st.line, i+1, err)
		}
		if st.Mark != "" {
			marks = append(marks, st.Mark)
		}
	}
	return nil
}

// verbs are the fields that a step has set, of those of which it has one.
func (s *Step) verbs() (out []string) {
	for _, v := range []struct {
		name string
		set  bool
	}{
		{"chapter", s.Chapter != ""}, {"say", s.Say != ""}, {"kubectl", s.Kubectl != ""}, {"deploy", s.Deploy != nil},
		{"apply", s.Apply != ""}, {"fault", len(s.Fault) > 0}, {"clear", len(s.Clear) > 0}, {"traffic", s.Traffic != nil},
		{"controller", s.Controller != nil}, {"wait", s.Wait != ""}, {"until", s.Until != nil}, {"mark", s.Mark != ""}, {"expect", s.Expect != nil},
	} {
		if v.set {
			out = append(out, v.name)
		}
	}
	return out
}

func (s *Step) validate(marks []string) error {
	switch verbs := s.verbs(); len(verbs) {
	case 1:
	case 0:
		return errors.New("it does nothing: give it one of chapter, say, kubectl, deploy, apply, fault, clear, traffic, controller, wait, until, mark, expect")
	default:
		return fmt.Errorf("it has %s: a step does one thing, so make steps of them", strings.Join(verbs, " and "))
	}
	if s.Instead && s.Cause != nil {
		return errors.New("cause and instead exclude each other")
	}
	switch {
	case len(s.Fault) > 0:
		_, err := faults.ParseAll(s.Fault)
		return err
	case len(s.Clear) > 0:
		_, err := faults.ParseAll(clears(s.Clear))
		return err
	case s.Kubectl != "":
		return checkKubectl(s.Kubectl)
	case s.Apply != "":
		_, err := manifests(s.Apply)
		return err
	case s.Deploy != nil:
		return s.Deploy.validate()
	case s.Controller != nil:
		return s.Controller.validate()
	case s.Traffic != nil && (*s.Traffic < 0 || *s.Traffic > MaxTraffic):
		return fmt.Errorf("traffic: %d: choose 0 to %d connections a second", *s.Traffic, MaxTraffic)
	case s.Wait != "" && s.Wait != waitConverged:
		if d, err := time.ParseDuration(s.Wait); err != nil || d <= 0 {
			return fmt.Errorf("wait: %q: write converged, or a length of time such as 3s, or use until", s.Wait)
		}
	case s.Until != nil:
		return s.Until.validate(marks)
	case s.Expect != nil:
		if s.Expect.That == "" {
			return errors.New("expect: that is missing: say in words what is expected")
		}
		return s.Expect.validate(marks)
	}
	return nil
}

// waitConverged is what wait takes beside a length of time.
const waitConverged = "converged"

// cause reports whether the control run leaves the step out.
func (s *Step) cause() bool {
	if s.Cause != nil {
		return *s.Cause
	}
	return len(s.Fault) > 0
}

// taken reports whether the step belongs to a run.
func (s *Step) taken(control bool) bool {
	if control {
		return !s.cause()
	}
	return !s.Instead
}

// clears are the settings that clear faults. "all" is left to the caller.
func clears(names List) (out []string) {
	for _, n := range names {
		if n == clearAll {
			continue
		}
		name, target, limited := strings.Cut(n, "@")
		if limited {
			out = append(out, name+"=off@"+target)
		} else {
			out = append(out, name+"=off")
		}
	}
	return out
}

const clearAll = "all"

// HasControl reports whether the scenario can be run without its cause.
func (s *Scenario) HasControl() bool {
	return slices.ContainsFunc(s.Steps, func(st Step) bool { return st.cause() })
}

// about is what is told at the beginning.
func (s *Scenario) about() string {
	text := strings.TrimSpace(s.About)
	if len(s.Reports) > 0 {
		text = strings.TrimSpace(text + " People met it: " + strings.Join(s.Reports, ", ") + ".")
	}
	return text
}
