package noderules

import (
	"encoding/binary"
	"net/netip"
	"strings"

	"github.com/kconverge/kconverge/collect"
)

// kubeProxyNFTables is kube-proxy's nftables mode: a chain for each Service
// port, filled with one dnat (one endpoint) or one dnat through an anonymous
// map (several), or, with session affinity and up to 1.36 always, with a
// verdict map that leads to one chain per endpoint. Names and shapes are from
// k8s.io/kubernetes v1.37.2 and v1.34.4 pkg/proxy/nftables/proxier.go.
var kubeProxyNFTables = layout{
	name:   "kube-proxy-nftables",
	tables: []tableKey{{familyIPv4, "kube-proxy"}, {familyIPv6, "kube-proxy"}},
	open:   func(key tableKey) resolver { return newKubeProxy(key) },
}

// Maps and sets of the table.
const (
	kpServiceIPs       = "service-ips"
	kpNodePorts        = "service-nodeports"
	kpNoEndpoints      = "no-endpoint-services"
	kpNoEndpointsPorts = "no-endpoint-nodeports"
	kpFirewallIPs      = "firewall-ips"
	kpClusterIPs       = "cluster-ips"
)

// kpMarkMasq is the chain that marks packets, which kube-proxy up to 1.36 jumps to
// where later ones set the mark themselves.
const kpMarkMasq = "mark-for-masquerade"

// kpCommentMax is where kube-proxy cuts comments; at that length a name may be
// cut.
const kpCommentMax = 128

// kpRole is what a chain is for, told by its name's prefix.
type kpRole string

const (
	kpCluster  kpRole = "service"  // endpoints under policy Cluster
	kpLocal    kpRole = "local"    // endpoints under policy Local
	kpExternal kpRole = "external" // leads to one of those two
	kpFirewall kpRole = "firewall" // source ranges of a load balancer
	kpEndpoint kpRole = "endpoint" // one endpoint
)

// kpPort is one Service port in the table's family.
type kpPort struct {
	namespace, service, port string
	proto                    collect.Protocol
}

// kpParseChain takes "service-ULMVA6XW-ns1/svc1/tcp/p80" apart. An endpoint's
// chain has "__IP/port" behind it.
func kpParseChain(name string) (kpRole, kpPort, bool) {
	prefix, rest, ok := strings.Cut(name, "-")
	if !ok {
		return "", kpPort{}, false
	}
	role := kpRole(prefix)
	switch role {
	case kpCluster, kpLocal, kpExternal, kpFirewall, kpEndpoint:
	default:
		return "", kpPort{}, false
	}
	_, rest, ok = strings.Cut(rest, "-") // the hash
	if !ok {
		return "", kpPort{}, false
	}
	if role == kpEndpoint {
		if rest, _, ok = strings.Cut(rest, "__"); !ok {
			return "", kpPort{}, false
		}
	}
	f := strings.Split(rest, "/")
	if len(f) != 4 || f[0] == "" || f[1] == "" {
		return "", kpPort{}, false
	}
	proto, ok := kpProtocol(f[2])
	if !ok {
		return "", kpPort{}, false
	}
	return role, kpPort{namespace: f[0], service: f[1], port: f[3], proto: proto}, true
}

func kpProtocol(s string) (collect.Protocol, bool) {
	switch s {
	case "tcp":
		return collect.TCP, true
	case "udp":
		return collect.UDP, true
	case "sctp":
		return collect.SCTP, true
	}
	return "", false
}

// kpParseComment takes "ns/svc:port" or "ns/svc" apart.
func kpParseComment(s string, proto collect.Protocol) (kpPort, bool) {
	ns, rest, ok := strings.Cut(s, "/")
	if !ok || ns == "" || len(s) >= kpCommentMax {
		return kpPort{}, false
	}
	svc, port, _ := strings.Cut(rest, ":")
	return kpPort{namespace: ns, service: svc, port: port, proto: proto}, svc != ""
}

// kpKey is the key of an element of a dispatch map: address (not for NodePorts),
// protocol and port, each padded to four bytes.
type kpKey struct {
	addr  netip.Addr
	proto collect.Protocol
	port  uint16
}

func kpParseKey(family uint8, nodePort bool, key []byte) (k kpKey, ok bool) {
	size := 4
	k.addr = netip.IPv4Unspecified()
	if family == familyIPv6 {
		size, k.addr = 16, netip.IPv6Unspecified()
	}
	if !nodePort {
		if len(key) < size {
			return kpKey{}, false
		}
		k.addr, _ = netip.AddrFromSlice(key[:size])
		key = key[size:]
	}
	if len(key) != 8 {
		return kpKey{}, false
	}
	switch key[0] {
	case protoTCP:
		k.proto = collect.TCP
	case protoUDP:
		k.proto = collect.UDP
	case protoSCTP:
		k.proto = collect.SCTP
	default:
		return kpKey{}, false
	}
	k.port = binary.BigEndian.Uint16(key[4:])
	return k, true
}

// protoNumber is the IP protocol number that a rule of the port matches.
func protoNumber(p collect.Protocol) uint8 {
	switch p {
	case collect.UDP:
		return protoUDP
	case collect.SCTP:
		return protoSCTP
	}
	return protoTCP
}
