package rulesync

import (
	"crypto/sha256"
	"encoding/base32"
	"net/netip"
	"strconv"
	"strings"
)

// Names and sizes of kube-proxy's nftables layout.
const (
	tableName = "kube-proxy"

	chainFilterPreroutingPreDNAT = "filter-prerouting-pre-dnat"
	chainFilterOutputPreDNAT     = "filter-output-pre-dnat"
	chainFilterInput             = "filter-input"
	chainFilterForward           = "filter-forward"
	chainFilterOutput            = "filter-output"
	chainNATPrerouting           = "nat-prerouting"
	chainNATOutput               = "nat-output"
	chainNATPostrouting          = "nat-postrouting"

	chainServices          = "services"
	chainServiceEndpoints  = "service-endpoints-check"
	chainNodePortEndpoints = "nodeport-endpoints-check"
	chainReject            = "reject-chain"
	chainClusterIPsCheck   = "cluster-ips-check"
	chainFirewallCheck     = "firewall-check"
	chainMasquerading      = "masquerading"

	mapServiceIPs          = "service-ips"
	mapServiceNodePorts    = "service-nodeports"
	mapNoEndpointServices  = "no-endpoint-services"
	mapNoEndpointNodePorts = "no-endpoint-nodeports"
	mapFirewallIPs         = "firewall-ips"
	setClusterIPs          = "cluster-ips"
	setHairpin             = "hairpin-connections"
	setNodePortIPs         = "nodeport-ips"

	prefixCluster  = "service-"
	prefixLocal    = "local-"
	prefixExternal = "external-"
	prefixFirewall = "firewall-"
	prefixEndpoint = "endpoint-"
	prefixAffinity = "affinity-"

	// baseNameMax is the longest name behind a prefix: nftables' 256 less 16
	// for the prefix.
	baseNameMax = 240
	// commentMax is the longest comment.
	commentMax = 128
)

// baseName is the part of a chain's name behind its prefix: a hash of the name,
// so that long names stay unique when they are cut, and the name.
func baseName(name string) string {
	sum := sha256.Sum256([]byte(name))
	out := base32.StdEncoding.EncodeToString(sum[:])[:8] + "-" + name
	if len(out) > baseNameMax {
		out = out[:baseNameMax-3] + "..."
	}
	return out
}

// portPath is "namespace/service/protocol/port"; an empty port name leaves the
// last slash.
func portPath(p *Port) string {
	return p.Service.Namespace + "/" + p.Service.Name + "/" + strings.ToLower(string(p.Protocol)) + "/" + p.Name
}

// portBase names the chains of a port.
func portBase(p *Port) string { return baseName(portPath(p)) }

// endpointBase names the chain and the affinity set of one endpoint of a port.
// A chain's name has no colons, so those of IPv6 become dots.
func endpointBase(p *Port, ep netip.AddrPort) string {
	ip := strings.ReplaceAll(ep.Addr().String(), ":", ".")
	return baseName(portPath(p) + "__" + ip + "/" + strconv.Itoa(int(ep.Port())))
}

// portComment is "namespace/service:port", without the colon when the port has
// no name.
func portComment(p *Port) string {
	s := p.Service.String()
	if p.Name != "" {
		s += ":" + p.Name
	}
	return s[:min(len(s), commentMax)]
}

// ofService reports that a chain belongs to a Service: only those have a slash.
func ofService(chain string) bool { return strings.Contains(chain, "/") }
