package main

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/template"
	"time"
	"unicode"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kconverge/kconverge/collect/agent"
	"github.com/kconverge/kconverge/collect/nodelog"
)

//go:embed manifest.yaml.tmpl
var manifestText string

var manifestTemplate = template.Must(template.New("manifest").Parse(manifestText))

func newAgent() *cobra.Command {
	c := &cobra.Command{Use: "agent", Short: "The node agent, which reads the rules of every node of a cluster", Args: cobra.NoArgs}
	c.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
	c.AddCommand(newManifest())
	return c
}

func newManifest() *cobra.Command {
	var m manifest
	c := &cobra.Command{
		Use:   "manifest",
		Short: "Print the agent's DaemonSet and the Role to read its logs, to pipe to kubectl apply -f -",
		Long: `manifest prints what runs the agent on every node: a namespace, a DaemonSet and
the Role that is needed to follow its logs. The agent is the static program
kconverge-agent (make build puts it into bin/), so an image of it needs nothing else:

  FROM scratch
  COPY bin/kconverge-agent /kconverge-agent
  ENTRYPOINT ["/kconverge-agent"]`,
		Example: `  kconverge agent manifest --image IMAGE | kubectl apply -f -`,
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if bad := validation.IsDNS1123Label(m.namespace); len(bad) > 0 {
				return exitf(exitUsage, "--namespace %q: %s", m.namespace, bad[0])
			}
			if m.image == "" {
				return exitf(exitUsage, "--image must not be empty")
			}
			if strings.ContainsFunc(m.image, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }) {
				return exitf(exitUsage, "--image %q: an image's name has no spaces", m.image)
			}
			if m.heartbeat <= 0 {
				return exitf(exitUsage, "--heartbeat %s: must be more than 0", m.heartbeat)
			}
			return m.write(c.OutOrStdout())
		},
	}
	c.Flags().StringVar(&m.image, "image", "kconverge-agent:latest", "the agent's image, as the nodes' container runtime finds it")
	c.Flags().StringVarP(&m.namespace, "namespace", "n", nodelog.DefaultNamespace, "the namespace to run the agents in")
	c.Flags().DurationVar(&m.heartbeat, "heartbeat", agent.DefaultHeartbeat, "how often an agent says that nothing is missing: shorter ones let \"converged\" be said sooner, and make longer logs")
	return c
}

// manifest says what runs the agents.
type manifest struct {
	image, namespace string
	heartbeat        time.Duration
}

func (m manifest) write(w io.Writer) error {
	quoted, err := json.Marshal(m.image) // a JSON string is one in YAML, too
	if err != nil {
		return err
	}
	var args string
	if m.heartbeat != agent.DefaultHeartbeat {
		args = fmt.Sprintf("[--heartbeat=%s]", m.heartbeat)
	}
	return manifestTemplate.Execute(w, map[string]string{
		"Namespace": m.namespace, "Name": nodelog.AgentName, "Container": nodelog.Container, "Image": string(quoted), "Args": args,
		"Labels": fmt.Sprintf("{%s: %s}", nodelog.AgentLabel, nodelog.AgentName),
		"Role":   agentsRole(m.namespace),
	})
}
