package cluster_test

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/collect/noderules/iptwitness"
	"github.com/kconverge/kconverge/collect/noderules/nftwitness"
	"github.com/kconverge/kconverge/engine/cluster"
	"github.com/kconverge/kconverge/engine/lab/nodes"
)

// reading is what nft or iptables-save printed of a node, and the one generation
// that it was read in. Legacy iptables has no generations: there the ports were so
// at every moment between two.
type reading struct {
	node     string
	gen      uint32
	from, to time.Time
	ports    []collect.RulePort
}

// read asks the program of the node's mode, again and again until no generation
// was committed meanwhile, or legacy iptables printed the same twice.
func (w *world) read(n *nodes.Node) reading {
	w.Helper()
	if w.legacy(n.Name()) {
		return w.readLegacy(n)
	}
	for {
		if w.Context().Err() != nil {
			w.Fatal(w.Context().Err())
		}
		before := w.generation(n)
		var ports []collect.RulePort
		if w.cluster.ModeOf(n.Name()) == cluster.IPTables {
			ports = iptwitness.Ports(w, w.exec(n, "xtables-nft-multi", "iptables-save"), w.exec(n, "xtables-nft-multi", "ip6tables-save"))
		} else {
			ports = nftwitness.Ports(w, w.exec(n, "nft", "-j", "list", "ruleset"))
		}
		if w.generation(n) == before {
			return reading{node: n.Name(), gen: before, ports: ports}
		}
	}
}

// readLegacy reads twice: what both print was there from the first one's end to the
// second one's beginning, but for a change that was taken back meanwhile.
func (w *world) readLegacy(n *nodes.Node) reading {
	w.Helper()
	print := func() string {
		return string(w.exec(n, "xtables-legacy-multi", "iptables-save")) + "\x00" + string(w.exec(n, "xtables-legacy-multi", "ip6tables-save"))
	}
	for last, from := print(), time.Now(); ; {
		to := time.Now()
		now := print()
		if uncounted(now) == uncounted(last) {
			v4, v6, _ := strings.Cut(now, "\x00")
			return reading{node: n.Name(), from: from, to: to, ports: iptwitness.Ports(w, []byte(v4), []byte(v6))}
		}
		last, from = now, time.Now()
	}
}

// uncounted leaves out of what iptables-save printed the counters and the times.
func uncounted(s string) string { return counters.ReplaceAllString(s, "") }

var counters = regexp.MustCompile(`(?m)^#.*$|\[\d+:\d+\]`)

// legacy tells that a node's rules are in the kernel's older tables, which are looked
// at from time to time.
func (w *world) legacy(node string) bool { return w.cluster.ModeOf(node) == cluster.IPTablesLegacy }

func (w *world) exec(n *nodes.Node, name string, args ...string) []byte {
	w.Helper()
	out, err := n.Exec(w.Context(), name, args...)
	if err != nil {
		w.Fatal(err)
	}
	return out
}

// generation asks the kernel for the number of the node's last committed change
// (NFT_MSG_GETGEN), by other code than that which is under test.
func (w *world) generation(n *nodes.Node) (gen uint32) {
	w.Helper()
	err := n.Do(func() error {
		c, err := netlink.Dial(unix.NETLINK_NETFILTER, nil)
		if err != nil {
			return err
		}
		defer c.Close()
		answers, err := c.Execute(netlink.Message{
			Header: netlink.Header{Type: unix.NFNL_SUBSYS_NFTABLES<<8 | unix.NFT_MSG_GETGEN, Flags: netlink.Request},
			Data:   make([]byte, 4), // nfgenmsg
		})
		if err != nil || len(answers) == 0 {
			return fmt.Errorf("no answer: %w", err)
		}
		attrs, err := netlink.NewAttributeDecoder(answers[0].Data[4:])
		if err != nil {
			return err
		}
		attrs.ByteOrder = binary.BigEndian
		for attrs.Next() {
			if attrs.Type() == unix.NFTA_GEN_ID {
				gen = attrs.Uint32()
			}
		}
		return attrs.Err()
	})
	if err != nil {
		w.Fatalf("ask %s for the generation of its rules: %v", n.Name(), err)
	}
	return gen
}

// lines are ports as text, one for each: Service, port, protocol, family, policy,
// what leads there, where it leads, session affinity and sources.
func lines(ports []collect.RulePort) (out []string) {
	for _, p := range ports {
		if !p.Empty() {
			out = append(out, fmt.Sprintf("%+v", p))
		}
	}
	slices.Sort(out)
	return out
}

// ofFamily are the ports of one family.
func ofFamily(f collect.Family, ports []collect.RulePort) []collect.RulePort {
	return slices.DeleteFunc(slices.Clone(ports), func(p collect.RulePort) bool { return p.Family != f })
}

// addresses are where the ports lead, for each Service.
func addresses(ports []collect.RulePort) map[string][]netip.Addr {
	out := map[string][]netip.Addr{}
	for _, p := range ports {
		key := p.Namespace + "/" + p.Service
		for _, e := range p.Endpoints {
			out[key] = append(out[key], e.Addr())
		}
	}
	tidy(out)
	return out
}

func tidy(m map[string][]netip.Addr) {
	for key, list := range m {
		slices.SortFunc(list, netip.Addr.Compare)
		if m[key] = slices.Compact(list); len(list) == 0 {
			delete(m, key)
		}
	}
}
