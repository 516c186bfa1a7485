package nodelog

import (
	"net/netip"
	"testing"
	"time"

	"github.com/kconverge/kconverge/collect"
)

// What is remembered of addresses that went is bounded, and one that comes back
// before it is forgotten is no cause.
func TestAddressesThatWentAreForgottenInTheEnd(t *testing.T) {
	c := NewCauses()
	c.limit = 100
	tell := func(addrs ...netip.Addr) {
		sl := &collect.EndpointSlice{Service: "web", Family: collect.IPv4, Ports: []collect.SlicePort{{Protocol: collect.TCP, Port: 80}, {Protocol: collect.UDP, Port: 80}}}
		for _, a := range addrs {
			sl.Endpoints = append(sl.Endpoints, collect.SliceEndpoint{Address: a, Ready: true, Serving: true})
		}
		c.Emit(collect.Event{At: time.Now(), Op: collect.OpModified, Object: collect.ObjectKey{Kind: "EndpointSlice", Namespace: "default", Name: "web-1"}, Payload: sl})
	}
	addr := func(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 244, byte(i >> 8), byte(i)}) }
	stays := netip.MustParseAddr("10.0.0.1")
	key := collect.RulePortKey{Namespace: "default", Service: "web"}
	for i := range 1000 {
		tell(stays, addr(i))
	}
	if len(c.first) > 102 || len(c.gone) > 100 {
		t.Errorf("%d addresses are remembered, %d of them gone", len(c.first), len(c.gone))
	}
	if _, ok := c.of(&key, netip.AddrPortFrom(stays, 80)); !ok {
		t.Error("one that stays was forgotten")
	}
	tell(stays, addr(998)) // published once more
	if _, ok := c.of(&key, netip.AddrPortFrom(addr(998), 80)); ok {
		t.Error("one that was published twice is a cause")
	}
	for i := range 300 { // it lives on while others go
		tell(stays, addr(998), addr(2000+i))
	}
	if _, ok := c.of(&key, netip.AddrPortFrom(addr(998), 80)); ok {
		t.Error("what lives was forgotten, and with it that it was published twice")
	}
	if _, known := c.first[published{"default", "web", netip.AddrPortFrom(addr(998), 80)}]; !known {
		t.Error("what lives was forgotten")
	}
}
