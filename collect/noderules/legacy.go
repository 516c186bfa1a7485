package noderules

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"reflect"
)

// The tables of legacy iptables come from the kernel as one block: entries one
// behind the other, jumps as offsets into it, chains as marks on the way
// (include/uapi/linux/netfilter_ipv4/ip_tables.h, netfilter_ipv6/ip6_tables.h,
// netfilter/x_tables.h). Numbers are in the machine's byte order.

// xtABI is where things stand in an entry of one family.
type xtABI struct {
	addr int // bytes of an address
	// Offsets in struct ipt_entry or ip6t_entry.
	proto, flags, inverted, targetOffset, nextOffset, counters, size int
	// protoFlag is needed for proto to count (IPv6 only).
	protoFlag uint8
}

var (
	xtABI4 = xtABI{addr: 4, proto: 80, flags: 82, inverted: 83, targetOffset: 88, nextOffset: 90, counters: 96, size: 112}
	xtABI6 = xtABI{addr: 16, proto: 128, flags: 131, inverted: 132, targetOffset: 140, nextOffset: 142, counters: 152, size: 168, protoFlag: 1}
)

func xtABIOf(family uint8) xtABI {
	if family == familyIPv6 {
		return xtABI6
	}
	return xtABI4
}

const (
	xtMatchHead = 32 // struct xt_entry_match and xt_entry_target: size, name, revision
	xtNameLen   = 29
	xtCounters  = 16 // struct xt_counters
	// Bits of what is inverted: IPT_INV_SRCIP, IPT_INV_DSTIP, IPT_INV_PROTO.
	xtInvSrc, xtInvDst, xtInvProto = 0x08, 0x10, 0x40
)

// legacyBlock is one table as the kernel gave it.
type legacyBlock struct {
	family uint8
	table  string
	// hooks is a bit for each hook; entries are where their chains begin.
	hooks   uint32
	entries [5]uint32
	data    []byte
}

// errBlock says that a block is not what the kernel's headers describe.
var errBlock = errors.New("the kernel's legacy iptables table is not as expected: this kernel or architecture is not supported")

// eachEntry calls f for each entry of the block.
func (b *legacyBlock) eachEntry(f func(at int, entry []byte, targetAt int) error) error {
	abi := xtABIOf(b.family)
	for at := 0; at < len(b.data); {
		left := b.data[at:]
		if len(left) < abi.size {
			return errBlock
		}
		target, next := int(binary.NativeEndian.Uint16(left[abi.targetOffset:])), int(binary.NativeEndian.Uint16(left[abi.nextOffset:]))
		if target < abi.size || next < target+xtMatchHead || next > len(left) {
			return errBlock
		}
		if err := f(at, left[:next:next], target); err != nil {
			return err
		}
		at += next
	}
	return nil
}

// settle clears what changes without any rule changing, so that two blocks of
// the same rules are the same bytes.
func (b *legacyBlock) settle() error {
	at := xtABIOf(b.family).counters
	return b.eachEntry(func(_ int, entry []byte, _ int) error {
		clear(entry[at : at+xtCounters])
		return nil
	})
}

func (b *legacyBlock) equal(o *legacyBlock) bool {
	return b.hooks == o.hooks && b.entries == o.entries && bytes.Equal(b.data, o.data)
}

// hookNames are the built-in chains by hook number.
var hookNames = [5]string{"PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"}

// decode reads the block's chains.
func (b *legacyBlock) decode() (*table, error) {
	t := newTable(tableKey{b.family, b.table})
	t.exists, t.xt = true, true
	begins := map[int]string{} // offset of a chain's first rule -> its name
	for i, name := range hookNames {
		if b.hooks&(1<<i) != 0 {
			begins[int(b.entries[i])] = name
			t.chains[name] = &chain{hook: &hook{num: uint32(i), typ: b.table}}
		}
	}
	// The mark of a chain says its name; its rules follow. The last rule before
	// the next chain is the chain's policy or its end.
	ends := map[int]bool{}
	for at := range begins {
		ends[at] = true
	}
	if err := b.eachEntry(func(at int, entry []byte, target int) error {
		if name, ok := xtErrorName(entry[target:]); ok {
			ends[at] = true
			if name != "ERROR" {
				begins[at+len(entry)] = name
				t.chains[name] = &chain{}
			}
		}
		return nil
	}); err != nil {
		return nil, err
	}
	current := ""
	err := b.eachEntry(func(at int, entry []byte, target int) error {
		if name, ok := begins[at]; ok {
			current = name
		}
		if _, ok := xtErrorName(entry[target:]); ok || ends[at+len(entry)] {
			return nil
		}
		c := t.chains[current]
		if c == nil {
			return errBlock
		}
		x, err := b.rule(entry, target, begins)
		if err != nil {
			return err
		}
		c.rules = append(c.rules, rule{handle: uint64(at), xt: x})
		return nil
	})
	if err != nil {
		return nil, err
	}
	return t, nil
}

// xtErrorName is the name that the target ERROR carries.
func xtErrorName(target []byte) (string, bool) {
	if xtName(target) != "ERROR" {
		return "", false
	}
	name, _, _ := bytes.Cut(target[xtMatchHead:], []byte{0})
	return string(name), true
}

// xtName is the name of a match or target.
func xtName(b []byte) string {
	name, _, _ := bytes.Cut(b[2:2+xtNameLen], []byte{0})
	return string(name)
}

// rule reads one entry.
func (b *legacyBlock) rule(entry []byte, target int, begins map[int]string) (*xtRule, error) {
	abi := xtABIOf(b.family)
	r := &xtRule{}
	zero := func(from, to int) bool { return len(bytes.Trim(entry[from:to], "\x00")) == 0 }
	flags, inverted := entry[abi.flags], entry[abi.inverted]
	n := abi.addr
	// Source, destination, source mask, destination mask, interfaces.
	if !zero(4*n, 4*n+64) || inverted&^uint8(xtInvSrc|xtInvDst|xtInvProto) != 0 {
		r.conditional = true
	}
	if src, ok := xtPrefix(entry[:n], entry[2*n:3*n]); !ok || inverted&xtInvSrc != 0 {
		r.conditional = r.conditional || !zero(2*n, 3*n)
	} else if src.Bits() > 0 {
		r.src = src
	}
	if dst, ok := xtPrefix(entry[n:2*n], entry[3*n:4*n]); !ok || inverted&xtInvDst != 0 {
		r.conditional = r.conditional || !zero(3*n, 4*n)
	} else if dst.Bits() > 0 {
		r.dst = dst
	}
	if proto := binary.NativeEndian.Uint16(entry[abi.proto:]); proto != 0 && (abi.protoFlag == 0 || flags&abi.protoFlag != 0) {
		if inverted&xtInvProto != 0 || proto > 255 {
			r.conditional = true
		} else {
			r.proto = uint8(proto)
		}
	}
	for at := abi.size; at < target; {
		if at+xtMatchHead > target {
			return nil, errBlock
		}
		size := int(binary.NativeEndian.Uint16(entry[at:]))
		if size < xtMatchHead || at+size > target {
			return nil, errBlock
		}
		r.match(xtName(entry[at:]), entry[at+2+xtNameLen], entry[at+xtMatchHead:at+size])
		at += size
	}
	t := entry[target:]
	if name := xtName(t); name != "" {
		r.target(b.family, name, t[2+xtNameLen], t[xtMatchHead:])
		return r, nil
	}
	if len(t) < xtMatchHead+4 {
		return nil, errBlock
	}
	// The standard target: an offset to go on at, or a verdict, negative and
	// one less.
	switch verdict := int32(binary.NativeEndian.Uint32(t[xtMatchHead:])); {
	case verdict >= 0:
		name, ok := begins[int(verdict)]
		if !ok {
			return r, nil // to the rule behind: "-j" was left out
		}
		r.action, r.chain = xtJump, name
	case verdict == -1-verdictDrop:
		r.action = xtDrop
	}
	return r, nil
}

// xtPrefix is an address under a mask; ok is false when the mask is none of a
// prefix.
func xtPrefix(addr, mask []byte) (netip.Prefix, bool) {
	bits := 0
	for bits < 8*len(mask) && mask[bits/8]&(0x80>>(bits%8)) != 0 {
		bits++
	}
	for i := bits; i < 8*len(mask); i++ {
		if mask[i/8]&(0x80>>(i%8)) != 0 {
			return netip.Prefix{}, false
		}
	}
	a, ok := netip.AddrFromSlice(addr)
	return netip.PrefixFrom(a, bits), ok
}

// since notes in t what is otherwise than in the table before.
func (t *table) since(was *table) {
	if !was.exists || !t.exists {
		t.touched = touched{all: true}
		return
	}
	t.touched = touched{}
	for name, c := range t.chains {
		old := was.chains[name]
		if old == nil || !reflect.DeepEqual(old.hook, c.hook) || !sameRules(old.rules, c.rules) {
			t.touched.chain(name)
		}
	}
	for name := range was.chains {
		if t.chains[name] == nil {
			t.touched.chain(name)
		}
	}
}

// sameRules compares rules without where they stand in their block.
func sameRules(a, b []rule) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if *a[i].xt != *b[i].xt {
			return false
		}
	}
	return true
}

// setLegacy puts the tables of legacy iptables into the tracker (one that is not
// among them does not exist), and says what came of it.
func (t *tracker) setLegacy(tables map[tableKey]*table, unread error) *generation {
	t.unread = ""
	if unread != nil {
		t.unread = fmt.Sprintf("the tables of legacy iptables cannot be read: %v", unread)
	} else {
		for _, k := range t.layouts {
			if !k.polled {
				continue
			}
			for _, tr := range k.tables {
				switch now := tables[tr.table.key]; {
				case now != nil && now != tr.table:
					now.since(tr.table)
					tr.table = now
				case now == nil && tr.table.exists:
					tr.table = newTable(tr.table.key)
				}
			}
		}
	}
	g := &generation{id: t.gen}
	t.conclude(g)
	return g
}
