package noderules

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"time"
)

// flatSeat is what a chain for clients with session affinity does: it writes the
// client down in a set and sends it to the endpoint that a map has for the
// frontend and the chain's number.
type flatSeat struct {
	number    uint32
	endpoints string
	clients   string
}

// flatParseSeat knows the rule of such a chain by its shape.
func flatParseSeat(rule *rule) (out flatSeat, ok bool) {
	var x []*expr
	for i := range rule.exprs {
		switch e := &rule.exprs[i]; e.name {
		case "payload", "counter", "ct":
		case "meta":
			if e.arg != metaL4Proto || e.sreg != 0 {
				return flatSeat{}, false
			}
		default:
			x = append(x, e)
		}
	}
	if len(x) != 4 || x[0].name != "immediate" || len(x[0].data) != 4 || x[1].name != "lookup" || !x[1].mapped || x[1].dreg == regVerdict ||
		x[2].name != "dynset" || x[3].name != "nat" || x[3].arg != natDNAT || regOffset(x[3].nat.addrMin) != regOffset(x[1].dreg) || x[3].nat.protoMin == 0 {
		return flatSeat{}, false
	}
	return flatSeat{binary.NativeEndian.Uint32(x[0].data), x[1].set, x[2].set}, true
}

// flatParseRecall knows the rule that sends the clients of a set to a chain.
func flatParseRecall(rule *rule) (clients, chain string, ok bool) {
	for i := range rule.exprs {
		switch e := &rule.exprs[i]; {
		case e.name == "lookup" && !e.mapped && e.arg == 0:
			clients = e.set
		case e.verdict != nil && e.verdict.chain != "":
			chain = e.verdict.chain
		}
	}
	return clients, chain, clients != "" && chain != ""
}

// readSeats finds the chains of seats, and which of them clients are sent back
// to from the chains that connections get to.
func (r *flat) readSeats(t *table, reached map[string]bool) {
	for name, c := range t.chains {
		if len(c.rules) == 1 {
			if s, ok := flatParseSeat(&c.rules[0]); ok {
				r.seats[name] = s
				r.kept[s.endpoints] = true
			}
		}
		if !reached[name] {
			continue
		}
		for i := range c.rules {
			if clients, chain, ok := flatParseRecall(&c.rules[i]); ok {
				r.recalls[kpElem{clients, chain}] = struct{}{}
			}
		}
	}
}

// flatChoice is one of the endpoints that a frontend with affinity is spread
// over.
type flatChoice struct {
	seat     flatSeat
	endpoint netip.AddrPort
	// stay is for how long a client is sent there again; 0 when it is not.
	stay time.Duration
}

// choices are those of a frontend. why is what is wrong with them.
func (r *flat) choices(t *table, rule flatRule, key string) (out []flatChoice, why []string) {
	for i := range rule.count {
		n := rule.offset + i
		var e element
		if s := t.sets[rule.choices]; s != nil {
			e = s.elems[key+string(binary.NativeEndian.AppendUint32(nil, n))]
		}
		if e.verdict == nil {
			why = append(why, fmt.Sprintf("map %s: %s number %d of %d is missing", rule.choices, flatAt(key), i, rule.count))
			continue
		}
		seat, ok := r.seats[e.verdict.chain]
		if !ok {
			why = append(why, fmt.Sprintf("map %s: %s number %d leads to chain %q", rule.choices, flatAt(key), n, e.verdict.chain))
			continue
		}
		c := flatChoice{seat: seat}
		if s := t.sets[seat.endpoints]; s != nil {
			at := s.elems[key+string(binary.NativeEndian.AppendUint32(nil, seat.number))]
			c.endpoint = flatEndpoint(&at)
		}
		if !c.endpoint.IsValid() {
			why = append(why, fmt.Sprintf("map %s: %s has no endpoint with number %d", seat.endpoints, flatAt(key), seat.number))
			continue
		}
		if s := t.sets[seat.clients]; s != nil {
			if _, ok := r.recalls[kpElem{seat.clients, e.verdict.chain}]; ok {
				c.stay = s.timeout
			}
		}
		if c.stay == 0 {
			why = append(why, fmt.Sprintf("chain %s: its clients are not sent there again", e.verdict.chain))
		}
		out = append(out, c)
	}
	return out, why
}

// checkKept says what is odd about the endpoints that clients of a frontend stay
// with: those that are missing, and those that nobody is sent to but who was
// before.
func (r *flat) checkKept(t *table, key string) {
	object := "kept " + key
	delete(r.odd, object)
	chosen := map[kpElem]map[uint32]struct{}{}
	for set, rule := range r.rules {
		if s := t.sets[set]; rule.choices == "" || s == nil {
			continue
		} else if _, in := s.elems[key]; !in {
			continue
		}
		choices, why := r.choices(t, rule, key)
		for _, text := range why {
			r.strange(object, text)
		}
		for _, c := range choices {
			add(chosen, kpElem{c.seat.endpoints, key}, c.seat.number)
		}
	}
	for set := range r.kept {
		k := kpElem{set, key}
		for n := range r.numbers[k] {
			if _, ok := chosen[k][n]; !ok {
				e := t.sets[set].elems[key+string(binary.NativeEndian.AppendUint32(nil, n))]
				r.strange(object, fmt.Sprintf("map %s: %s number %d: %s is never chosen", set, flatAt(key), n, flatEndpoint(&e)))
			}
		}
	}
}
