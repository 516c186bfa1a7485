package rulesync_test

import (
	"bufio"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/kconverge/kconverge/collect/noderules"
	"github.com/kconverge/kconverge/engine/desired"
	"github.com/kconverge/kconverge/engine/lab/nodes"
)

// TestCapturedRulesOfKubeProxyAreWhatIsWanted: beside each captured rule set
// stand the objects that kube-proxy made it of. This needs no kube-proxy, and
// has what the lab's API server does not take: two families.
func TestCapturedRulesOfKubeProxyAreWhatIsWanted(t *testing.T) {
	files, err := filepath.Glob("../../testdata/rules/kube-proxy-1.37.2-nftables/*.yaml")
	if err != nil || len(files) < 15 {
		t.Fatalf("%d captures: %v", len(files), err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		t.Run(name, func(t *testing.T) {
			c, err := nodes.Start(t.Context(), nodes.Options{Names: []string{proxyNode}})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := c.Close(); err != nil {
					t.Error(err)
				}
			})
			n := c.Node(proxyNode)
			if _, err := n.Exec(t.Context(), "nft", "-f", strings.TrimSuffix(file, "yaml")+"nft"); err != nil {
				t.Fatal(err)
			}
			got, err := noderules.Read(t.Context(), noderules.Options{Node: proxyNode, NetNS: n.NetNS()})
			if err != nil {
				t.Fatal(err)
			}
			svcs, epSlices := readObjects(t, file)
			want := wantedRules(svcs, epSlices, desired.NodeRef{Name: proxyNode})
			if len(want) == 0 {
				t.Fatal("nothing is wanted")
			}
			if diff := rulesDiff(want, got.Ports); diff != "" {
				t.Errorf("-wanted by the objects +captured:\n%s", diff)
			}
		})
	}
}

// readObjects reads the Services and EndpointSlices of a YAML file.
func readObjects(t *testing.T, file string) (svcs []corev1.Service, epSlices []discoveryv1.EndpointSlice) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for r := yaml.NewYAMLReader(bufio.NewReader(f)); ; {
		doc, err := r.Read()
		if errors.Is(err, io.EOF) {
			return svcs, epSlices
		}
		if err != nil {
			t.Fatal(err)
		}
		obj, _, err := scheme.Codecs.UniversalDeserializer().Decode(doc, nil, nil)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		switch o := obj.(type) {
		case *corev1.Service:
			svcs = append(svcs, *o)
		case *discoveryv1.EndpointSlice:
			epSlices = append(epSlices, *o)
		default:
			t.Fatalf("%s holds a %T", file, obj)
		}
	}
}
