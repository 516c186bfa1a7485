package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/engine/lab"
	"github.com/kconverge/kconverge/engine/lab/apiserver"
	"github.com/kconverge/kconverge/engine/lab/faults"
	"github.com/kconverge/kconverge/ui"
)

// labFaults lets the screen set the lab's faults.
type labFaults struct{ *lab.Lab }

// Faults implements ui.Faults.
func (l labFaults) Faults() (out []ui.Fault) {
	active := map[string][]string{}
	for _, a := range l.Lab.Faults() {
		_, value, _ := strings.Cut(a.String(), "=")
		active[a.Name] = append(active[a.Name], value)
	}
	for _, d := range faults.Definitions() {
		_, syntax, _ := strings.Cut(d.Syntax(), "=")
		_, example, _ := strings.Cut(d.Example, "=")
		out = append(out, ui.Fault{Name: d.Name, Syntax: syntax, Does: d.Does, See: d.See, Example: example, Active: active[d.Name]})
	}
	return out
}

// SetFault implements ui.Faults.
func (l labFaults) SetFault(ctx context.Context, text string) error {
	return l.SetFaults(ctx, "screen", text)
}

// parseFaults reads what --fault was given.
func parseFaults(texts []string, ownPlane bool, nodes int) ([]faults.Setting, error) {
	settings, err := faults.ParseAll(texts)
	if err != nil {
		return nil, exitWith(exitUsage, fmt.Errorf("--fault: %w", err))
	}
	var names []string
	for i := range nodes {
		names = append(names, fmt.Sprintf("node-%d", i+1))
	}
	f := faults.New(faults.Options{OwnPlane: ownPlane, Nodes: names})
	for _, s := range settings {
		if err := f.Check(s); err != nil {
			return nil, exitWith(exitUsage, fmt.Errorf("--fault: %w", err))
		}
	}
	return settings, nil
}

func newLabFaults() *cobra.Command {
	return &cobra.Command{
		Use:   "faults [NAME ...]",
		Short: "List what can be made to go wrong in the lab, with values and what one will see",
		Args:  cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, names []string) error {
			if len(names) == 0 {
				explainFaults(c.OutOrStdout(), faults.Definitions())
				return nil
			}
			var list []faults.Definition
			for _, n := range names {
				d, err := faults.Lookup(n)
				if err != nil {
					return exitWith(exitUsage, err)
				}
				list = append(list, d)
			}
			explainFaults(c.OutOrStdout(), list)
			return nil
		},
	}
}

// explainFaults prints what faults do.
func explainFaults(w io.Writer, list []faults.Definition) {
	for i, d := range list {
		if i > 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintf(w, "%s\n    %s.\n    One sees: %s.\n    For instance --fault '%s'", d.Syntax(), d.Does, d.See, d.Example)
		if d.OwnPlane {
			fmt.Fprint(w, "; not with --control-plane")
		}
		fmt.Fprintln(w)
	}
	if len(list) < len(faults.Definitions()) {
		return
	}
	fmt.Fprintf(w, `
PERCENT is a share such as 30%%, EVERY and DURATION a time such as 500ms or 10s. SERVICE, NODE
and PODS are names, several with + between them; PODS those of pods or of what made them,
also NAMESPACE/NAME. C is one of %s.
"off" clears a fault, and two targets make two faults, which add up where both apply; several values go with ; between them.
While a lab runs: kconverge lab fault NAME=VALUE, the key b on its screen, or
  kubectl -n %s patch configmap %s --type merge -p '{"data":{"sync-delay":"5s@node-2"}}'
`, strings.Join(faults.Clients, ", "), faults.ConfigMapNamespace, faults.ConfigMapName)
}

// faultTimeout is how long the running lab may take to answer.
const faultTimeout = 15 * time.Second

func newLabFault() *cobra.Command {
	var kubeconfig string
	c := &cobra.Command{
		Use:   "fault [NAME=VALUE ...]",
		Short: "Set or clear faults of the lab that runs, or list those that are set",
		Example: `  kconverge lab fault sync-delay=5s@node-2 workers=1
  kconverge lab fault sync-delay=off
  kconverge lab fault`,
		RunE: func(c *cobra.Command, texts []string) error {
			settings, err := faults.ParseAll(texts)
			if err != nil {
				return exitWith(exitUsage, err)
			}
			client, err := runningLab(kubeconfig)
			if err != nil {
				return exitWith(exitUnreachable, err)
			}
			ctx, cancel := context.WithTimeout(c.Context(), faultTimeout)
			defer cancel()
			if len(settings) > 0 {
				if _, err := faults.Write(ctx, client, settings); err != nil {
					return faultRefused(err)
				}
			}
			return listFaults(ctx, c.OutOrStdout(), client)
		},
	}
	c.Flags().StringVar(&kubeconfig, "kubeconfig", "", "the lab's kubeconfig `FILE` (default: where kconverge lab puts it)")
	return c
}

func faultRefused(err error) error {
	if apierrors.IsInvalid(err) {
		return exitWith(exitUsage, err)
	}
	return exitWith(exitUnreachable, err)
}

// runningLab is a client of the lab whose kubeconfig is at path, or where a lab puts it.
func runningLab(path string) (kubernetes.Interface, error) {
	if path == "" {
		dir, _ := runtimeDir()
		path = filepath.Join(dir, "lab.kubeconfig")
	}
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("no lab runs: there is no %s: start one with kconverge lab, or name its --kubeconfig", path)
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	if config.Host == "" {
		return nil, errors.New("no lab runs yet: " + path + " is empty")
	}
	config.UserAgent = apiserver.OwnUserAgent // no fault may keep one from clearing it
	return kubernetes.NewForConfig(config)
}

// listFaults prints those that are set.
func listFaults(ctx context.Context, w io.Writer, client kubernetes.Interface) error {
	cm, err := client.CoreV1().ConfigMaps(faults.ConfigMapNamespace).Get(ctx, faults.ConfigMapName, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return exitWith(exitUnreachable, fmt.Errorf("ask the lab for its faults: %w", err))
	}
	var settings []faults.Setting
	var wrong error
	if err == nil {
		settings, wrong = faults.FromData(cm.Data)
	}
	for _, s := range settings {
		fmt.Fprintln(w, collect.Plain(s.String()))
	}
	if wrong != nil {
		return exitWith(exitUsage, fmt.Errorf("the ConfigMap %s/%s: %w", faults.ConfigMapNamespace, faults.ConfigMapName, wrong))
	}
	if len(settings) == 0 {
		fmt.Fprintln(w, "no fault is set")
	}
	return nil
}
