package cluster

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kconverge/kconverge/engine/lab/nodes"
)

// What kube-proxies can be: their own mode, and by which programs.
const (
	NFTables = "nftables"
	// NFTables134 is that of Kubernetes 1.34, which writes other chains.
	NFTables134 = "nftables-1.34"
	// IPTables is the commands that write to nf_tables, IPTablesLegacy those that
	// write to the kernel's older tables.
	IPTables       = "iptables"
	IPTablesLegacy = "iptables-legacy"
)

// mode is what stands behind such a word.
type mode struct {
	proxyMode string // in kube-proxy's own words
	program   string // of Options.Bin
	// commands is the program that is every iptables command; empty for none.
	commands string
}

var modes = map[string]mode{
	NFTables:       {proxyMode: "nftables", program: kubeProxy},
	NFTables134:    {proxyMode: "nftables", program: kubeProxy + "-1.34"},
	IPTables:       {proxyMode: "iptables", program: kubeProxy, commands: "xtables-nft-multi"},
	IPTablesLegacy: {proxyMode: "iptables", program: kubeProxy, commands: "xtables-legacy-multi"},
}

// Modes are the words for Options.Mode, sorted.
func Modes() []string { return slices.Sorted(maps.Keys(modes)) }

// ModeOf is a node's, by its name.
func (c *Cluster) ModeOf(node string) string {
	list := strings.Split(c.o.Mode, ",")
	i := slices.IndexFunc(c.net.Nodes(), func(n *nodes.Node) bool { return n.Name() == node })
	return list[max(i, 0)%len(list)]
}

// checkModes looks for what the modes need.
func (o Options) checkModes() error {
	for _, word := range strings.Split(o.Mode, ",") {
		m, ok := modes[word]
		if !ok {
			return fmt.Errorf("no mode %q of kube-proxy: use %s, or several of them with commas between, for the nodes by turns", word, strings.Join(Modes(), ", "))
		}
		if _, err := os.Stat(filepath.Join(o.Bin, m.program)); err != nil {
			return fmt.Errorf("kube-proxy's mode %s: %w: `make cluster-bin` builds it", word, err)
		}
		if m.commands != "" {
			if _, err := exec.LookPath(m.commands); err != nil {
				return fmt.Errorf("kube-proxy's mode %s: %w: install iptables, or take another mode", word, err)
			}
		}
	}
	return nil
}

// writeCommands makes a folder of iptables commands for each mode that has some:
// kube-proxy takes what stands first in its PATH, whatever this machine's default
// is.
func (c *Cluster) writeCommands() error {
	var errs []error
	for _, word := range Modes() {
		m := modes[word]
		program, err := exec.LookPath(m.commands)
		if m.commands == "" || err != nil {
			continue // checkModes has said what is missing
		}
		errs = append(errs, os.MkdirAll(c.path(m.commands), 0o700))
		for _, name := range []string{"iptables", "iptables-save", "iptables-restore", "ip6tables", "ip6tables-save", "ip6tables-restore"} {
			errs = append(errs, os.Symlink(program, filepath.Join(c.path(m.commands), name)))
		}
	}
	return errors.Join(errs...)
}

// environment lets programs find a mode's iptables commands, and then what is in
// other folders.
func (c *Cluster) environment(m mode, folders ...string) []string {
	out := slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "PATH=") })
	if m.commands != "" {
		folders = append([]string{c.path(m.commands)}, folders...)
	}
	return append(out, "PATH="+strings.Join(append(folders, os.Getenv("PATH")), string(os.PathListSeparator)))
}
