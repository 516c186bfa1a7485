package rulesync

import (
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// Session affinity in the flat layout. As with kube-proxy, what a client is
// remembered for is the Service port, whichever of its addresses it came to: the
// map affinity-ports gives a connection the mark of its port. Each endpoint of a
// port has a number that it keeps, whatever comes and goes. For each number, and
// each time that clients stay, there is one set of clients and one chain, shared
// by all Services:
//
//   - stay-SECONDS-NUMBER writes the client down in clients-SECONDS-NUMBER and
//     sends it to the endpoint with that number (affinity-endpoints);
//   - the chain affinity sends clients that are written down there, until one of
//     their endpoints still exists;
//   - otherwise a number below the count of endpoints is drawn, and the map
//     affinity-choices leads to the chain.
//
// So a change of endpoints is elements here too. Two things differ from
// kube-proxy, which has a set of clients for each endpoint: when an endpoint goes
// and another one gets its number, the clients of the former are sent to the
// latter; and a new timeout begins with no clients.
const (
	chainAffinity             = "affinity"
	chainShortCircuitAffinity = "short-circuit-affinity"
	flatAffinityPorts         = "affinity-ports"
	prefixStay                = "stay-"
	prefixClients             = "clients-"
)

// seat is where clients that stay for so many seconds with the endpoint of a
// number are written down.
type seat struct {
	stay   uint32
	number uint32
}

func (s seat) String() string {
	return strconv.FormatUint(uint64(s.stay), 10) + "-" + strconv.FormatUint(uint64(s.number), 10)
}

// clients is the set of the seat's clients.
func (s seat) clients() string { return prefixClients + s.String() }

// chain sends a client to its endpoint.
func (p *plane) seatChain(s seat) string { return p.prefix + prefixStay + s.String() }

// parseSeat reads what String wrote.
func parseSeat(text string) (seat, bool) {
	a, b, _ := strings.Cut(text, "-")
	stay, err1 := strconv.ParseUint(a, 10, 32)
	number, err2 := strconv.ParseUint(b, 10, 32)
	s := seat{uint32(stay), uint32(number)}
	return s, err1 == nil && err2 == nil && s.String() == text
}

// keptEndpoints is the map from key and number to endpoint, choices the one from
// key and a number below the count to the chain of a seat.
func (p *plane) keptEndpoints() string { return p.prefix + "affinity-endpoints" }
func (p *plane) choices() string       { return p.prefix + "affinity-choices" }

// affinitySets describe the maps; the numbers are declared as marks, as those of
// the endpoints are.
func affinitySets(f family) []setSpec {
	key, keyLen := ipProtoPort(f)
	out := []setSpec{{
		name: flatAffinityPorts, flags: unix.NFT_SET_MAP, keyType: key, keyLen: keyLen,
		dataType: typeMark, dataLen: 4, comment: "frontends with session affinity",
	}}
	for _, p := range planes {
		out = append(out, setSpec{
			name: p.keptEndpoints(), flags: unix.NFT_SET_MAP, keyType: key<<6 | typeMark, keyLen: keyLen + 4,
			dataType: concat(f.addrType, typeService), dataLen: f.addrLen + 4, comment: "frontend and kept number to endpoint",
		}, setSpec{
			name: p.choices(), flags: unix.NFT_SET_MAP, keyType: key<<6 | typeMark, keyLen: keyLen + 4,
			dataType: verdictType, comment: "frontend and number to kept number",
		})
	}
	return out
}

// stay is for how many seconds clients of the port stay with their endpoint, at
// least one: the API has whole seconds.
func (p *Port) stay() uint32 {
	if !p.Affinity {
		return 0
	}
	return uint32(max(1, p.AffinityTimeout/time.Second))
}

// identity tells the port from every other one of its family. It can be read
// back from a key and a comment.
func (p *Port) identity() string {
	name, _, _ := strings.Cut(flatComment(p, "", false), " ")
	return name + "/" + string(protoNumber(p.Protocol))
}

// portMark marks the connections of a port. Should two ports ever have the same
// one, a client of both may be remembered for one as for the other; it is sent to
// endpoints of the right one all the same.
func portMark(identity string) uint32 {
	sum := sha256.Sum256([]byte(identity))
	return max(1, binary.BigEndian.Uint32(sum[:])) // 0 is no mark
}

// number gives each endpoint of a port a number: those that have one keep it.
func (st *flatState) number(identity string, endpoints []netip.AddrPort) {
	had := st.numbers[identity]
	now, taken := map[netip.AddrPort]uint32{}, map[uint32]bool{}
	for _, ep := range endpoints {
		if n, ok := had[ep]; ok && !taken[n] {
			now[ep], taken[n] = n, true
		}
	}
	next := uint32(0)
	for _, ep := range endpoints {
		if _, ok := now[ep]; ok {
			continue
		}
		for taken[next] {
			next++
		}
		now[ep], taken[next] = next, true
	}
	st.numbers[identity] = now
}

// keptElements are a list's elements when its clients stay.
func (k listKey) keptElements(l list, out map[slot]value) {
	for i, ep := range l.endpoints {
		n := l.numbers[ep]
		out[slot{k.plane.choices(), k.key + string(host32(uint32(i)))}] = value{verdict: verdict{chain: k.plane.seatChain(seat{l.stay, n})}, comment: l.comment}
		out[slot{k.plane.keptEndpoints(), k.key + string(host32(n))}] = value{data: string(addrPortValue(ep)), comment: l.comment}
	}
}

// needSeats makes the sets, chains and rules of a list's seats unless they
// exist.
func (st *flatState) needSeats(w *work, l list) {
	for _, n := range slices.Sorted(maps.Values(l.numbers)) {
		s := seat{l.stay, n}
		if st.made[s.clients()] {
			continue
		}
		st.made[s.clients()] = true
		w.unit(func(b *batch) { s.add(b, st.family) })
	}
}

func (s seat) add(b *batch, f family) {
	b.setID++
	b.addSet(setSpec{
		name: s.clients(), id: b.setID, flags: unix.NFT_SET_EVAL | unix.NFT_SET_TIMEOUT,
		keyType: concat(typeMark, f.addrType), keyLen: 4 + f.addrLen, timeoutMS: uint64(s.stay) * 1000,
	})
	// A client is loaded behind the place of an address and a port.
	client := f.addrLen/4 + 1
	to := client + 1 + f.addrLen/4
	for _, p := range planes {
		name := p.seatChain(s)
		b.addChain(name, "", nil)
		b.flushChain(name)
		b.addRule(name, "", slices.Concat(f.key(), one(
			&expr.Immediate{Register: reg(f.addrLen/4 + 2), Data: host32(s.number)},
			&expr.Lookup{SourceRegister: reg(0), DestRegister: reg(to), IsDestRegSet: true, SetName: p.keptEndpoints()},
		), f.client(client), one(
			&expr.Dynset{SrcRegKey: reg(client), SetName: s.clients(), Operation: unix.NFT_DYNSET_OP_UPDATE},
			&expr.NAT{Type: expr.NATTypeDestNAT, Family: uint32(f.proto), RegAddrMin: reg(to), RegProtoMin: reg(to + f.addrLen/4)},
		))...)
		b.addRule(p.sticky, "", slices.Concat(f.client(0), one(inSet(s.clients()), jump(name)))...)
	}
}

// unmake empties the chains of a seat that nothing leads to any more, and deletes
// its set. The chains stay: kernels before 6.2 may still count elements that led
// to them.
func (s seat) unmake(b *batch) {
	for _, p := range planes {
		b.flushChain(p.seatChain(s))
	}
	b.deleteSet(s.clients())
}

// client loads who comes, and for which port.
func (f family) client(word uint32) []expr.Any {
	return []expr.Any{
		&expr.Ct{Key: expr.CtKeyMARK, Register: reg(word)},
		&expr.Payload{DestRegister: reg(word + 1), Base: expr.PayloadBaseNetworkHeader, Offset: f.saddr, Len: f.addrLen},
	}
}

// setupAffinity sends the connections to ports with affinity, marked, through
// the chains for clients that are remembered.
func (f family) setupAffinity(b *batch) {
	for _, p := range planes {
		b.addRule(p.chain, "clients with session affinity", slices.Concat(f.key(), one(
			&expr.Lookup{SourceRegister: reg(0), DestRegister: reg(0), IsDestRegSet: true, SetName: flatAffinityPorts},
			&expr.Ct{Key: expr.CtKeyMARK, Register: reg(0), SourceRegister: true},
			jump(p.sticky),
		))...)
	}
}

// addKeptCount makes the set of the keys with n endpoints whose clients stay, and
// the rule that chooses one of them.
func (p *plane) addKeptCount(b *batch, f family, n int) {
	b.setID++
	s := setSpec{name: p.set(true, n), id: b.setID, comment: "frontends with session affinity by their number of endpoints"}
	s.keyType, s.keyLen = ipProtoPort(f)
	b.addSet(s)
	b.addRule(p.chain, "", slices.Concat(f.key(), one(
		inSet(p.set(true, n)),
		&expr.Numgen{Register: reg(f.addrLen/4 + 2), Modulus: uint32(n), Type: unix.NFT_NG_RANDOM},
		vmap(p.choices(), 0),
	))...)
}

// readKept finds the numbers that the endpoints have.
func (st *flatState) readKept() {
	n := int(st.family.addrLen + 8)
	for s, v := range st.elements {
		if s.container != planeMain.keptEndpoints() && s.container != planeShort.keptEndpoints() || len(s.key) != n+4 {
			continue
		}
		name, _, _ := strings.Cut(v.comment, " ")
		identity := name + "/" + string(s.key[st.family.addrLen])
		if st.numbers[identity] == nil {
			st.numbers[identity] = map[netip.AddrPort]uint32{}
		}
		st.numbers[identity][addrPortOf(v.data)] = binary.NativeEndian.Uint32([]byte(s.key[n:]))
	}
}
