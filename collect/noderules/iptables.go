package noderules

import (
	"crypto/sha256"
	"encoding/base32"
	"strings"

	"github.com/kconverge/kconverge/collect"
)

// kubeProxyIPTablesNFT is kube-proxy's iptables mode on a node whose iptables
// writes to nf_tables: chains and rules of iptables in the tables "nat" and
// "filter" of each family. Names and shapes are from k8s.io/kubernetes v1.37.2
// and v1.34.4 pkg/proxy/iptables/proxier.go.
//
// In the nat table KUBE-SERVICES and KUBE-NODEPORTS lead, by address, protocol
// and port, to KUBE-SVC-HASH (policy Cluster), KUBE-SVL-HASH (policy Local),
// KUBE-EXT-HASH (addresses for traffic from outside, goes on to one of those) or
// KUBE-FW-HASH (source ranges of a load balancer, goes on to KUBE-EXT-HASH);
// from there a jump for each endpoint leads to KUBE-SEP-HASH, which translates.
// The filter table rejects or drops what has no endpoints.
var kubeProxyIPTablesNFT = layout{
	name: collect.LayoutIPTables + "-nft",
	tables: []tableKey{
		{familyIPv4, "nat"}, {familyIPv4, "filter"},
		{familyIPv6, "nat"}, {familyIPv6, "filter"},
	},
	joint: openIPTables,
	xt:    true,
}

// kubeProxyIPTablesLegacy is the same on a node whose iptables writes to the
// older tables of the kernel. They are no part of nf_tables: they have no
// generation and no notifications, so they are polled.
var kubeProxyIPTablesLegacy = layout{
	name:   collect.LayoutIPTables + "-legacy",
	tables: kubeProxyIPTablesNFT.tables,
	joint:  openIPTables,
	xt:     true,
	polled: true,
}

const (
	iptServices  = "KUBE-SERVICES"
	iptExternal  = "KUBE-EXTERNAL-SERVICES"
	iptNodePorts = "KUBE-NODEPORTS"
	iptMarkMasq  = "KUBE-MARK-MASQ"
	iptMarkDrop  = "KUBE-MARK-DROP"
)

// iptRole is what a chain is for, told by its name's prefix.
type iptRole uint8

const (
	iptOther iptRole = iota
	iptCluster
	iptLocal
	iptExt
	iptFirewall
	iptEndpoint
)

// iptHashLen is the length of the hash in a chain's name.
const iptHashLen = 16

// iptParseChain takes "KUBE-SVC-ERIFXISQEP7F7OF4" apart. One hash stands in all
// the chains of a Service port, but each endpoint's chain has its own.
func iptParseChain(name string) (iptRole, string) {
	rest, ok := strings.CutPrefix(name, "KUBE-")
	if !ok {
		return iptOther, ""
	}
	prefix, hash, ok := strings.Cut(rest, "-")
	if !ok || len(hash) != iptHashLen || strings.Contains(hash, "-") {
		return iptOther, ""
	}
	switch prefix {
	case "SVC":
		return iptCluster, hash
	case "SVL":
		return iptLocal, hash
	case "EXT":
		return iptExt, hash
	case "FW":
		return iptFirewall, hash
	case "SEP":
		return iptEndpoint, hash
	}
	return iptOther, ""
}

// iptHash is the hash in the names of a Service port's chains (portProtoHash in
// proxier.go).
func iptHash(p kpPort) string {
	name := p.namespace + "/" + p.service
	if p.port != "" {
		name += ":" + p.port
	}
	sum := sha256.Sum256([]byte(name + strings.ToLower(string(p.proto))))
	return base32.StdEncoding.EncodeToString(sum[:])[:iptHashLen]
}

// iptNames gives the Service ports that a comment may name: each of its words
// that looks like "namespace/name" or "namespace/name:port".
func iptNames(comment string, proto collect.Protocol) (out []kpPort) {
	for word := range strings.FieldsSeq(comment) {
		ns, rest, ok := strings.Cut(word, "/")
		if !ok || ns == "" {
			continue
		}
		svc, port, _ := strings.Cut(rest, ":")
		if svc != "" && !strings.Contains(rest, "/") {
			out = append(out, kpPort{namespace: ns, service: svc, port: port, proto: proto})
		}
	}
	return out
}

// iptKind tells a frontend's kind by the end of its rule's comment.
func iptKind(comment string, to iptRole) collect.FrontendKind {
	switch {
	case strings.HasSuffix(comment, " loadbalancer IP") || to == iptFirewall:
		return collect.FrontendLoadBalancer
	case strings.HasSuffix(comment, " external IP"):
		return collect.FrontendExternalIP
	case strings.HasSuffix(comment, " cluster IP") || to == iptCluster || to == iptLocal:
		return collect.FrontendClusterIP
	}
	return collect.FrontendExternalIP
}

// protocolOf is the Service protocol of an IP protocol number, "" for others.
func protocolOf(number uint8) collect.Protocol {
	switch number {
	case protoTCP:
		return collect.TCP
	case protoUDP:
		return collect.UDP
	case protoSCTP:
		return collect.SCTP
	}
	return ""
}
