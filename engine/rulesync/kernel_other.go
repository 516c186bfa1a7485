//go:build !linux

package rulesync

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"runtime"

	"github.com/kconverge/kconverge/collect"
)

func newKernelTable(Options) (Table, error) {
	return nil, fmt.Errorf("%s has no nftables: give a table in memory: %w", runtime.GOOS, errors.ErrUnsupported)
}

func listenIn(int, netip.AddrPort) (net.Listener, error) { return nil, errors.ErrUnsupported }

func endFlows(int, []collect.Family, flows) (int, error) { return 0, nil }
