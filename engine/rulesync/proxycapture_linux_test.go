package rulesync_test

import (
	"bytes"
	"context"
	"flag"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/engine/desired"
)

var capture = flag.Bool("capture", false, "let real kube-proxies write testdata/rules/kube-proxy-kinds anew")

const kindsDir = "../../testdata/rules/kube-proxy-kinds/"

// captureName is the name of a kind's files.
func captureName(name string) string { return strings.ReplaceAll(name, " ", "-") }

// TestCaptureRulesOfEveryKindOfKubeProxy gives the objects of services.yaml to
// each kind of kube-proxy, beside 1.37 in nftables mode, and writes down what nft
// or iptables-save print of it.
func TestCaptureRulesOfEveryKindOfKubeProxy(t *testing.T) {
	if !*capture {
		t.Skip("only with -capture")
	}
	kinds := append(proxyKinds[:len(proxyKinds):len(proxyKinds)], proxyKinds[0])
	kinds[len(kinds)-1].name, kinds[len(kinds)-1].kind.program = "1.37 nftables", "kube-proxy"
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			server := startProxyAPI(t)
			client, err := kubernetes.NewForConfig(server.Config())
			if err != nil {
				t.Fatal(err)
			}
			api := &proxyAPI{t: t, client: client}
			s := startPolledSide(t, k.name)
			api.createNode(proxyNode, s.addresses()[0])
			n, err := client.CoreV1().Nodes().Get(t.Context(), proxyNode, metav1.GetOptions{})
			api.ok(err)
			n.Status.Addresses = append(n.Status.Addresses[:1], corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: "fd00:18::1"})
			_, err = client.CoreV1().Nodes().UpdateStatus(t.Context(), n, metav1.UpdateOptions{})
			api.ok(err)
			svcs, epSlices := readObjects(t, kindsDir+"services.yaml")
			for i := range svcs {
				made, err := client.CoreV1().Services(svcs[i].Namespace).Create(t.Context(), &svcs[i], metav1.CreateOptions{})
				api.ok(err)
				if made.Status = svcs[i].Status; len(made.Status.LoadBalancer.Ingress) > 0 {
					_, err = client.CoreV1().Services(made.Namespace).UpdateStatus(t.Context(), made, metav1.UpdateOptions{})
					api.ok(err)
				}
			}
			for i := range epSlices {
				_, err := client.DiscoveryV1().EndpointSlices(epSlices[i].Namespace).Create(t.Context(), &epSlices[i], metav1.CreateOptions{})
				api.ok(err)
			}
			alive, log, stop := startProxyOfKind(t, s.node, server, k.kind)
			want := wantedRules(svcs, epSlices, desired.NodeRef{Name: proxyNode, Addresses: []netip.Addr{s.addresses()[0], netip.MustParseAddr("fd00:18::1")}})
			if k.kind.iptables != "" {
				want = withoutEarlySources(want)
			}
			ctx, cancel := context.WithTimeout(alive, proxyPatience)
			defer cancel()
			if err := s.view.wait(ctx, func(ports map[collect.RulePortKey]collect.RulePort) bool {
				return rulesDiff(want, slices.Collect(maps.Values(ports))) == ""
			}); err != nil {
				t.Fatalf("%v\n(-want +had):\n%s\n%s", err, rulesDiff(want, s.view.ports()), tail(log))
			}
			stop()
			write := func(suffix string, args ...string) {
				out, err := s.node.Exec(t.Context(), args[0], args[1:]...)
				if err != nil {
					t.Fatal(err)
				}
				var kept bytes.Buffer
				for l := range bytes.Lines(out) {
					if !bytes.HasPrefix(l, []byte("#")) { // when it was printed
						kept.Write(l)
					}
				}
				if err := os.WriteFile(filepath.Join(kindsDir, captureName(k.name)+suffix), kept.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if k.kind.iptables == "" {
				write(".nft", "nft", "list", "ruleset")
				return
			}
			write(".save", k.kind.iptables, "iptables-save", "-c")
			write(".save6", k.kind.iptables, "ip6tables-save", "-c")
		})
	}
}
