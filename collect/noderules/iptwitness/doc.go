// Package iptwitness reads a node's rules by other means than collect/noderules:
// from the text that iptables-save and ip6tables-save print, of either kind of
// iptables. Tests compare the two. It shares nothing with the decoder but the
// names of things, and only tests import it.
package iptwitness
