package noderules

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"net/netip"
	"strings"
)

// iptService is a Service for iptRules.
type iptService struct {
	name, port, proto string // "ns/svc", "http", "tcp"
	vip               string
	nodePort          int
	lb, external      string
	ranges            []string // source ranges of the load balancer
	local, affinity   bool
	endpoints         []string // "addr:port"; the locals are those on even ports
}

func (s *iptService) portName() string {
	if s.port == "" {
		return s.name
	}
	return s.name + ":" + s.port
}

func (s *iptService) hash(more string) string {
	sum := sha256.Sum256([]byte(s.portName() + s.proto + more))
	return base32.StdEncoding.EncodeToString(sum[:])[:16]
}

func (s *iptService) here() (out []string) {
	for _, e := range s.endpoints {
		if netip.MustParseAddrPort(e).Port()%2 == 0 {
			out = append(out, e)
		}
	}
	return out
}

// iptRules writes an input for iptables-restore the way kube-proxy does
// (pkg/proxy/iptables/proxier.go of k8s.io/kubernetes v1.37.2). Large leaves the
// comments on endpoints out, as kube-proxy does above 1,000 endpoints.
func iptRules(large bool, services ...*iptService) string {
	var filter, nat, chains strings.Builder
	note := func(text string, args ...any) string {
		return fmt.Sprintf("-m comment --comment %q ", fmt.Sprintf(text, args...))
	}
	quiet := func(text string, args ...any) string {
		if large {
			return ""
		}
		return note(text, args...)
	}
	for _, s := range services {
		n, hash := s.portName(), s.hash("")
		svc, svl, ext, fw := "KUBE-SVC-"+hash, "KUBE-SVL-"+hash, "KUBE-EXT-"+hash, "KUBE-FW-"+hash
		proto := fmt.Sprintf("-m %s -p %s ", s.proto, s.proto)
		outside := s.nodePort != 0 || s.lb != "" || s.external != ""
		has, here := len(s.endpoints) > 0, !s.local || len(s.here()) > 0
		refuse, why := "REJECT", "has no endpoints"
		if has {
			refuse, why = "DROP", "has no local endpoints"
		}
		catch := func(chain, comment, addr string, port int, to string) {
			fmt.Fprintf(&nat, "-A %s %s%s-d %s --dport %d -j %s\n", chain, note("%s %s", n, comment), proto, addr, port, to)
		}
		if has {
			catch("KUBE-SERVICES", "cluster IP", s.vip, 80, svc)
			fmt.Fprintf(&chains, ":%s - [0:0]\n", svc)
			fmt.Fprintf(&nat, "-A %s %s%s-d %s --dport 80 ! -s 10.244.0.0/16 -j KUBE-MARK-MASQ\n", svc, note("%s cluster IP", n), proto, s.vip)
		} else {
			fmt.Fprintf(&filter, "-A KUBE-SERVICES %s%s-d %s --dport 80 -j REJECT\n", note("%s has no endpoints", n), proto, s.vip)
		}
		for kind, addr := range map[string]string{"external IP": s.external, "loadbalancer IP": s.lb} {
			if addr == "" {
				continue
			}
			to := ext
			if kind == "loadbalancer IP" && len(s.ranges) > 0 {
				to = fw
			}
			if has {
				catch("KUBE-SERVICES", kind, addr, 80, to)
			}
			if !has || !here {
				fmt.Fprintf(&filter, "-A KUBE-EXTERNAL-SERVICES %s%s-d %s --dport 80 -j %s\n", note("%s %s", n, why), proto, addr, refuse)
			}
		}
		if s.nodePort != 0 {
			if has {
				fmt.Fprintf(&nat, "-A KUBE-NODEPORTS %s%s--dport %d -j %s\n", note("%s", n), proto, s.nodePort, ext)
			}
			if !has || !here {
				fmt.Fprintf(&filter, "-A KUBE-EXTERNAL-SERVICES %s-m addrtype --dst-type LOCAL %s--dport %d -j %s\n", note("%s %s", n, why), proto, s.nodePort, refuse)
			}
		}
		if !has {
			continue
		}
		if outside {
			fmt.Fprintf(&chains, ":%s - [0:0]\n", ext)
			if !s.local {
				fmt.Fprintf(&nat, "-A %s %s-j KUBE-MARK-MASQ\n-A %s -j %s\n", ext, note("masquerade traffic for %s external destinations", n), ext, svc)
			} else {
				fmt.Fprintf(&nat, "-A %s %s-s 10.244.0.0/16 -j %s\n", ext, note("pod traffic for %s external destinations", n), svc)
				fmt.Fprintf(&nat, "-A %s %s-m addrtype --src-type LOCAL -j %s\n", ext, note("route LOCAL traffic for %s external destinations", n), svc)
				if here {
					fmt.Fprintf(&nat, "-A %s -j %s\n", ext, svl)
				}
			}
		}
		if len(s.ranges) > 0 {
			fmt.Fprintf(&chains, ":%s - [0:0]\n", fw)
			for _, from := range s.ranges {
				fmt.Fprintf(&nat, "-A %s %s-s %s -j %s\n", fw, note("%s loadbalancer IP", n), from, ext)
			}
			fmt.Fprintf(&nat, "-A %s %s\n", fw, note("other traffic to %s will be dropped by KUBE-PROXY-FIREWALL", n))
			fmt.Fprintf(&filter, "-A KUBE-PROXY-FIREWALL %s%s-d %s --dport 80 -j DROP\n", note("%s traffic not accepted by %s", n, fw), proto, s.lb)
		}
		spread := func(chain string, eps []string) {
			for _, e := range eps {
				if s.affinity {
					fmt.Fprintf(&nat, "-A %s %s-m recent --name KUBE-SEP-%s --rcheck --seconds 10800 --reap -j KUBE-SEP-%s\n", chain, quiet("%s -> %s", n, e), s.hash(e), s.hash(e))
				}
			}
			for i, e := range eps {
				chance := ""
				if i < len(eps)-1 {
					chance = fmt.Sprintf("-m statistic --mode random --probability %.10f ", 1/float64(len(eps)-i))
				}
				fmt.Fprintf(&nat, "-A %s %s%s-j KUBE-SEP-%s\n", chain, quiet("%s -> %s", n, e), chance, s.hash(e))
			}
		}
		spread(svc, s.endpoints)
		if s.local && here {
			fmt.Fprintf(&chains, ":%s - [0:0]\n", svl)
			spread(svl, s.here())
		}
		for _, e := range s.endpoints {
			sep := "KUBE-SEP-" + s.hash(e)
			fmt.Fprintf(&chains, ":%s - [0:0]\n", sep)
			fmt.Fprintf(&nat, "-A %s %s-s %s -j KUBE-MARK-MASQ\n", sep, quiet("%s", n), netip.MustParseAddrPort(e).Addr())
			sticky := ""
			if s.affinity {
				sticky = "-m recent --name " + sep + " --set "
			}
			fmt.Fprintf(&nat, "-A %s %s%s%s-j DNAT --to-destination %s\n", sep, quiet("%s", n), sticky, proto, e)
		}
	}
	return `*filter
:KUBE-SERVICES - [0:0]
:KUBE-EXTERNAL-SERVICES - [0:0]
:KUBE-FORWARD - [0:0]
:KUBE-NODEPORTS - [0:0]
:KUBE-PROXY-FIREWALL - [0:0]
` + filter.String() + `COMMIT
*nat
:KUBE-SERVICES - [0:0]
:KUBE-NODEPORTS - [0:0]
:KUBE-MARK-MASQ - [0:0]
` + chains.String() + nat.String() + `-A KUBE-MARK-MASQ -j MARK --or-mark 0x4000
-A KUBE-SERVICES -m comment --comment "kubernetes service nodeports; NOTE: this must be the last rule in this chain" -m addrtype --dst-type LOCAL -j KUBE-NODEPORTS
COMMIT
`
}

// iptBase hooks kube-proxy's chains in, as its first sync does.
const iptBase = `*filter
:KUBE-SERVICES - [0:0]
:KUBE-EXTERNAL-SERVICES - [0:0]
:KUBE-PROXY-FIREWALL - [0:0]
-I INPUT -m conntrack --ctstate NEW -m comment --comment "kubernetes load balancer firewall" -j KUBE-PROXY-FIREWALL
-I INPUT -m conntrack --ctstate NEW -m comment --comment "kubernetes externally-visible service portals" -j KUBE-EXTERNAL-SERVICES
-I FORWARD -m conntrack --ctstate NEW -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
-I OUTPUT -m conntrack --ctstate NEW -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
COMMIT
*nat
:KUBE-SERVICES - [0:0]
-I PREROUTING -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
-I OUTPUT -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
COMMIT
`

// iptEveryKind is one Service of every kind, in IPv4.
func iptEveryKind() []*iptService {
	return []*iptService{
		{name: "default/web", port: "http", proto: "tcp", vip: "10.96.0.10", endpoints: []string{"10.244.0.3:8080", "10.244.1.3:8081", "10.244.2.3:8082"}},
		{name: "default/one", proto: "tcp", vip: "10.96.0.11", endpoints: []string{"10.244.0.4:8080"}},
		{name: "kube-system/dns", port: "dns", proto: "udp", vip: "10.96.0.12", endpoints: []string{"10.244.0.5:53", "10.244.1.5:53"}},
		{name: "shop/assoc", port: "data", proto: "sctp", vip: "10.96.0.13", endpoints: []string{"10.244.0.6:5000"}},
		{name: "shop/empty", port: "http", proto: "tcp", vip: "10.96.0.14", nodePort: 30014, external: "192.0.2.14"},
		{name: "shop/sticky", port: "http", proto: "tcp", vip: "10.96.0.15", affinity: true, endpoints: []string{"10.244.0.7:80", "10.244.1.7:80"}},
		{name: "shop/cart", port: "http", proto: "tcp", vip: "10.96.0.16", nodePort: 30080, endpoints: []string{"10.244.0.8:80", "10.244.1.8:81"}},
		{name: "shop/edge", port: "https", proto: "tcp", vip: "10.96.0.17", nodePort: 30081, lb: "192.0.2.17", external: "192.0.2.18", local: true, endpoints: []string{"10.244.0.9:80", "10.244.1.9:81"}},
		{name: "shop/far", port: "https", proto: "tcp", vip: "10.96.0.19", nodePort: 30082, lb: "192.0.2.19", local: true, endpoints: []string{"10.244.1.10:81"}},
		{name: "shop/guarded", port: "https", proto: "tcp", vip: "10.96.0.20", lb: "192.0.2.20", ranges: []string{"203.0.113.0/24", "198.51.100.0/22", "192.0.2.20/32"}, endpoints: []string{"10.244.1.11:81"}},
	}
}

const iptEveryKindWant = `default/one: TCP IPv4 Cluster [ClusterIP 10.96.0.11:80] -> 10.244.0.4:8080
default/web:http TCP IPv4 Cluster [ClusterIP 10.96.0.10:80] -> 10.244.0.3:8080 10.244.1.3:8081 10.244.2.3:8082
kube-system/dns:dns UDP IPv4 Cluster [ClusterIP 10.96.0.12:80] -> 10.244.0.5:53 10.244.1.5:53
shop/assoc:data SCTP IPv4 Cluster [ClusterIP 10.96.0.13:80] -> 10.244.0.6:5000
shop/cart:http TCP IPv4 Cluster [ClusterIP 10.96.0.16:80, NodePort 0.0.0.0:30080] -> 10.244.0.8:80 10.244.1.8:81
shop/edge:https TCP IPv4 Cluster [ClusterIP 10.96.0.17:80] -> 10.244.0.9:80 10.244.1.9:81
shop/edge:https TCP IPv4 Local [ExternalIP 192.0.2.18:80, LoadBalancer 192.0.2.17:80, NodePort 0.0.0.0:30081] -> 10.244.0.9:80
shop/empty:http TCP IPv4 Cluster [ClusterIP 10.96.0.14:80, ExternalIP 192.0.2.14:80, NodePort 0.0.0.0:30014] ->
shop/far:https TCP IPv4 Cluster [ClusterIP 10.96.0.19:80] -> 10.244.1.10:81
shop/far:https TCP IPv4 Local [LoadBalancer 192.0.2.19:80, NodePort 0.0.0.0:30082] ->
shop/guarded:https TCP IPv4 Cluster [ClusterIP 10.96.0.20:80, LoadBalancer 192.0.2.20:80] -> 10.244.1.11:81 from [192.0.2.20/32 198.51.100.0/22 203.0.113.0/24]
shop/sticky:http TCP IPv4 Cluster [ClusterIP 10.96.0.15:80] -> 10.244.0.7:80 10.244.1.7:80 affinity 3h0m0s
`
