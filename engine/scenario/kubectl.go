package scenario

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
)

// command is a line of kubectl's that was read.
type command struct {
	verb      string // scale, restart, set-image, delete, label, annotate, patch, cordon, uncordon
	namespace string
	// kind and names are what it is about; names is empty with a selector.
	kind     string
	names    []string
	selector string
	// set are keys and values, a nil value to remove: of label, annotate, set image.
	set map[string]*string

	replicas    int32
	patch       string
	patchType   string
	subresource string
	grace       int64 // seconds, -1 for the object's own
	all         bool
	text        string // as it was written
}

// kubectlVerbs is what a line may begin with.
const kubectlVerbs = "scale, rollout restart, set image, delete, label, annotate, patch, cordon, uncordon"

// checkKubectl says what is wrong with a line before it is run. What stands in braces is
// only known then.
func checkKubectl(line string) error {
	if err := checkPlaces(line); err != nil {
		return fmt.Errorf("kubectl: %w", err)
	}
	_, err := parseKubectl(place.ReplaceAllString(line, "1"))
	return err
}

// parseKubectl reads a command line.
func parseKubectl(line string) (*command, error) {
	args, err := words(line)
	if err != nil {
		return nil, fmt.Errorf("kubectl: %w", err)
	}
	if len(args) > 0 && args[0] == "kubectl" {
		args = args[1:]
	}
	c := &command{text: strings.Join(strings.Fields(line), " "), set: map[string]*string{}}
	fs := pflag.NewFlagSet("kubectl", pflag.ContinueOnError)
	fs.StringVarP(&c.namespace, "namespace", "n", "default", "")
	fs.StringVarP(&c.selector, "selector", "l", "", "")
	fs.Int32Var(&c.replicas, "replicas", -1, "")
	fs.StringVarP(&c.patch, "patch", "p", "", "")
	fs.StringVar(&c.patchType, "type", "strategic", "")
	fs.StringVar(&c.subresource, "subresource", "", "")
	fs.Int64Var(&c.grace, "grace-period", -1, "")
	fs.BoolVar(&c.all, "all", false, "")
	for _, ignored := range []string{"overwrite", "wait", "force", "now"} {
		fs.Bool(ignored, false, "")
	}
	if err := fs.Parse(args); err != nil {
		return nil, fmt.Errorf("kubectl: %w", err)
	}
	rest := fs.Args()
	two := func(first, second, verb string) bool {
		if len(rest) > 1 && rest[0] == first && rest[1] == second {
			c.verb, rest = verb, rest[2:]
			return true
		}
		return false
	}
	switch {
	case len(rest) == 0:
		return nil, errors.New("kubectl: a command is missing: " + kubectlVerbs)
	case two("rollout", "restart", "restart"), two("set", "image", "set-image"):
	case slices.Contains([]string{"scale", "delete", "label", "annotate", "patch", "cordon", "uncordon"}, rest[0]):
		c.verb, rest = rest[0], rest[1:]
	default:
		return nil, fmt.Errorf("kubectl: %q is not among what a scenario can do: %s, and apply as a step of its own", rest[0], kubectlVerbs)
	}
	if c.verb == "cordon" || c.verb == "uncordon" {
		c.kind, c.names, rest = "node", rest, nil
		if len(c.names) == 0 {
			return nil, fmt.Errorf("kubectl %s: which node?", c.verb)
		}
	} else if rest, err = c.objects(rest); err != nil {
		return nil, err
	}
	return c, c.validate(rest)
}

// objects takes TYPE/NAME, TYPE NAME, or TYPE with a selector off the arguments.
func (c *command) objects(args []string) (rest []string, err error) {
	if len(args) == 0 {
		return nil, fmt.Errorf("kubectl %s: what? write TYPE/NAME, such as deployment/web", c.verb)
	}
	kind, name, one := strings.Cut(args[0], "/")
	c.kind, rest = strings.ToLower(kind), args[1:]
	switch {
	case one:
		c.names = []string{name}
	case c.selector != "" || c.all:
	case len(rest) == 0:
		return nil, fmt.Errorf("kubectl %s %s: which? give a name, or -l KEY=VALUE", c.verb, kind)
	default:
		c.names, rest = rest[:1], rest[1:]
	}
	return rest, nil
}

func (c *command) validate(rest []string) error {
	switch c.verb {
	case "scale":
		if c.replicas < 0 {
			return errors.New("kubectl scale: --replicas=N is missing")
		}
	case "patch":
		if c.patch == "" {
			return errors.New("kubectl patch: -p 'JSON' is missing")
		}
		if _, ok := patchTypes[c.patchType]; !ok {
			return fmt.Errorf("kubectl patch: --type %s: choose strategic, merge or json", c.patchType)
		}
	case "label", "annotate", "set-image":
		if len(rest) == 0 {
			return fmt.Errorf("kubectl %s: KEY=VALUE is missing", c.verb)
		}
		for _, pair := range rest {
			key, value, ok := strings.Cut(pair, "=")
			switch {
			case ok:
				c.set[key] = &value
			case strings.HasSuffix(key, "-") && c.verb != "set-image":
				c.set[strings.TrimSuffix(key, "-")] = nil
			default:
				return fmt.Errorf("kubectl %s: %q is not KEY=VALUE", c.verb, pair)
			}
		}
		rest = nil
	}
	if len(rest) > 0 {
		return fmt.Errorf("kubectl %s: what is %q?", c.verb, rest[0])
	}
	return nil
}

// mark is what the axis says of it.
func (c *command) mark() string {
	what := c.kind
	if len(c.names) > 0 {
		what = strings.Join(c.names, ",")
		if c.kind == "endpointslice" || c.kind == "pod" || c.kind == "node" {
			what = c.kind + " " + what
		}
	} else if c.selector != "" {
		what += " -l " + c.selector
	}
	switch c.verb {
	case "scale":
		return "scale " + what + " to " + strconv.Itoa(int(c.replicas))
	case "set-image":
		return "new version of " + what
	}
	return c.verb + " " + what
}
