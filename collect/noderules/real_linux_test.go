package noderules

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/collect/noderules/nftwitness"
)

// TestRulesOfTheRealKubeProxyDecode loads what kube-proxy 1.37.2 itself wrote.
func TestRulesOfTheRealKubeProxyDecode(t *testing.T) {
	files, err := filepath.Glob(rulesDir + "kube-proxy-1.37.2-nftables/*.nft")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d rule sets: %v", len(files), err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".nft")
		t.Run(name, func(t *testing.T) {
			n := newNS(t)
			n.nft(t, fixture(t, "kube-proxy-1.37.2-nftables/"+name+".nft"))
			got, err := Read(context.Background(), Options{NetNS: n.fd})
			if err != nil {
				t.Fatal(err)
			}
			if len(got.Unknown) > 0 {
				t.Errorf("unknown %q", got.Unknown)
			}
			if (len(got.Ports) == 0) != (name == "empty") {
				t.Errorf("%d ports", len(got.Ports))
			}
			var seen []collect.RulePort
			for _, p := range nftwitness.Ports(t, n.list(t)) {
				if !p.Empty() {
					seen = append(seen, p)
				}
			}
			if diff := cmp.Diff(render(seen), render(got.Ports)); diff != "" {
				t.Errorf("(-nft +got):\n%s", diff)
			}
		})
	}
}
