package rulesync

import (
	"net/netip"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kconverge/kconverge/collect"
)

// The expected names stand in the comments of kube-proxy's own source
// (pkg/proxy/nftables/proxier.go, v1.37.2).
func TestChainsAreNamedAsKubeProxyNamesThem(t *testing.T) {
	p := &Port{Service: types.NamespacedName{Namespace: "ns1", Name: "svc1"}, Name: "p80", Protocol: collect.TCP}
	if got := portBase(p); got != "ULMVA6XW-ns1/svc1/tcp/p80" {
		t.Errorf("port: %s", got)
	}
	if got := endpointBase(p, netip.MustParseAddrPort("10.180.0.1:80")); got != "5OJB2KTY-ns1/svc1/tcp/p80__10.180.0.1/80" {
		t.Errorf("endpoint: %s", got)
	}
	if got := endpointBase(p, netip.MustParseAddrPort("[fd00::1]:80")); !strings.HasSuffix(got, "-ns1/svc1/tcp/p80__fd00..1/80") {
		t.Errorf("IPv6 endpoint: %s", got)
	}
	if got := portComment(p); got != "ns1/svc1:p80" {
		t.Errorf("comment: %s", got)
	}
	p.Name = ""
	if got := portComment(p); got != "ns1/svc1" {
		t.Errorf("comment of a port without a name: %s", got)
	}
	if got := portBase(p); !strings.HasSuffix(got, "-ns1/svc1/tcp/") {
		t.Errorf("port without a name: %s", got)
	}
	long := baseName(strings.Repeat("x", 300))
	if len(long) != 240 || !strings.HasSuffix(long, "...") {
		t.Errorf("a long name became %d bytes: %s", len(long), long)
	}
}
