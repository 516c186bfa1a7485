//go:build !linux

package agent

import "github.com/kconverge/kconverge/collect"

// ReadClock asks the kernel how far its clock may be trusted. Only Linux says.
func ReadClock() collect.NodeClock { return collect.NodeClock{} }
