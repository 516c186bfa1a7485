package rulesync

import (
	"encoding/binary"
	"fmt"

	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// nf_tables messages of the nftables subsystem start at this type.
const nftMessages = unix.NFNL_SUBSYS_NFTABLES << 8

// Attributes and limits that golang.org/x/sys/unix lacks
// (include/uapi/linux/netfilter/nf_tables.h, nfnetlink.h).
const (
	nftaTableUserdata = 6
	nftaChainUserdata = 12
	nftaSetElemKeyEnd = 10
	nfnlBatchGenID    = 1

	verdictType = 0xffffff00 // NFT_DATA_VERDICT

	// elementsBytes bounds one list of elements: an attribute's length has 16
	// bits.
	elementsBytes = 60000
)

// batch writes netlink messages one behind the other. Encoding by hand rather
// than through nftables.Conn, because Conn asks for an acknowledgement and an
// echo of every rule, which overflow the receive buffer of an unprivileged
// namespace at a few hundred rules, and cannot write the comments of tables and
// chains. Expressions are encoded by google/nftables.
type batch struct {
	family byte
	table  string
	buf    []byte
	start  int // of the current message
	seq    uint32
	setID  uint32 // of the last anonymous map
	err    error  // the first; the batch is unusable after it
}

// message starts a message; end completes it.
func (b *batch) message(typ, flags uint16) {
	b.start = len(b.buf)
	b.seq++
	b.buf = append(b.buf, 0, 0, 0, 0)
	b.buf = binary.NativeEndian.AppendUint16(b.buf, typ)
	b.buf = binary.NativeEndian.AppendUint16(b.buf, unix.NLM_F_REQUEST|flags)
	b.buf = binary.NativeEndian.AppendUint32(b.buf, b.seq)
	b.buf = append(b.buf, 0, 0, 0, 0) // port: the kernel's
	// struct nfgenmsg: family, version, resource.
	b.buf = append(b.buf, b.family, unix.NFNETLINK_V0, 0, 0)
}

func (b *batch) nft(typ, flags uint16) { b.message(nftMessages|typ, flags) }

func (b *batch) end() {
	binary.NativeEndian.PutUint32(b.buf[b.start:], uint32(len(b.buf)-b.start))
}

func (b *batch) bytes(typ uint16, data []byte) {
	if len(data)+4 > 0xffff {
		b.fail(fmt.Errorf("attribute %d has %d bytes", typ, len(data)))
		return
	}
	b.buf = binary.NativeEndian.AppendUint16(b.buf, uint16(len(data)+4))
	b.buf = binary.NativeEndian.AppendUint16(b.buf, typ)
	b.buf = append(b.buf, data...)
	for len(b.buf)%4 != 0 {
		b.buf = append(b.buf, 0)
	}
}

func (b *batch) str(typ uint16, s string) { b.bytes(typ, append([]byte(s), 0)) }

func (b *batch) u32(typ uint16, v uint32) {
	b.bytes(typ, binary.BigEndian.AppendUint32(nil, v))
}

// nest writes an attribute whose content is what f writes.
func (b *batch) nest(typ uint16, f func()) {
	at := len(b.buf)
	b.buf = append(b.buf, 0, 0, 0, 0)
	f()
	n := len(b.buf) - at
	if n > 0xffff {
		b.fail(fmt.Errorf("attribute %d has %d bytes", typ, n))
		return
	}
	binary.NativeEndian.PutUint16(b.buf[at:], uint16(n))
	binary.NativeEndian.PutUint16(b.buf[at+2:], typ|unix.NLA_F_NESTED)
}

func (b *batch) fail(err error) {
	if b.err == nil {
		b.err = err
	}
}

// comment is a comment as nft stores it: type, length, text, zero.
func comment(typ byte, text string) []byte {
	return append(append([]byte{typ, byte(len(text) + 1)}, text...), 0)
}

const (
	commentOfTable   = 0 // NFTNL_UDATA_TABLE_COMMENT, and of chains and rules
	commentOfElement = 0 // NFTNL_UDATA_SET_ELEM_COMMENT
	commentOfSet     = 7 // NFTNL_UDATA_SET_COMMENT
)

func (b *batch) addTable(name, text string) {
	b.nft(unix.NFT_MSG_NEWTABLE, unix.NLM_F_CREATE)
	b.str(unix.NFTA_TABLE_NAME, name)
	b.bytes(nftaTableUserdata, comment(commentOfTable, text))
	b.end()
}

// hook ties a base chain to the packet path.
type hook struct {
	typ      string
	num      uint32
	priority int32
}

func (b *batch) addChain(name, text string, h *hook) {
	b.nft(unix.NFT_MSG_NEWCHAIN, unix.NLM_F_CREATE)
	b.str(unix.NFTA_CHAIN_TABLE, b.table)
	b.str(unix.NFTA_CHAIN_NAME, name)
	if h != nil {
		b.nest(unix.NFTA_CHAIN_HOOK, func() {
			b.u32(unix.NFTA_HOOK_HOOKNUM, h.num)
			b.u32(unix.NFTA_HOOK_PRIORITY, uint32(h.priority))
		})
		b.str(unix.NFTA_CHAIN_TYPE, h.typ)
	}
	if text != "" {
		b.bytes(nftaChainUserdata, comment(commentOfTable, text))
	}
	b.end()
}

func (b *batch) flushChain(name string) {
	b.nft(unix.NFT_MSG_DELRULE, 0)
	b.str(unix.NFTA_RULE_TABLE, b.table)
	b.str(unix.NFTA_RULE_CHAIN, name)
	b.end()
}

func (b *batch) deleteChain(name string) {
	b.nft(unix.NFT_MSG_DELCHAIN, 0)
	b.str(unix.NFTA_CHAIN_TABLE, b.table)
	b.str(unix.NFTA_CHAIN_NAME, name)
	b.end()
}

// addRule appends a rule to a chain.
func (b *batch) addRule(chain, text string, exprs ...expr.Any) {
	b.nft(unix.NFT_MSG_NEWRULE, unix.NLM_F_CREATE|unix.NLM_F_APPEND)
	b.str(unix.NFTA_RULE_TABLE, b.table)
	b.str(unix.NFTA_RULE_CHAIN, chain)
	b.nest(unix.NFTA_RULE_EXPRESSIONS, func() {
		for _, e := range exprs {
			data, err := expr.Marshal(b.family, e)
			if err != nil {
				b.fail(fmt.Errorf("encode %T: %w", e, err))
				return
			}
			b.bytes(unix.NFTA_LIST_ELEM|unix.NLA_F_NESTED, data)
		}
	})
	if text != "" {
		b.bytes(unix.NFTA_RULE_USERDATA, comment(commentOfTable, text))
	}
	b.end()
}

// setSpec describes a set or a map. Types are nft's numbers of data types, six
// bits each in a concatenation (nftables include/datatype.h); the kernel keeps
// them for nft only.
type setSpec struct {
	name            string
	id              uint32 // of an anonymous map
	flags           uint32
	keyType, keyLen uint32
	dataType        uint32 // of a map
	dataLen         uint32
	size            int
	timeoutMS       uint64
	hostOrder       bool     // of the key: numbers, for nft's listing
	fields          []uint32 // lengths of a key's parts, for ranges in it
	comment         string
}

func (b *batch) addSet(s setSpec) {
	b.nft(unix.NFT_MSG_NEWSET, unix.NLM_F_CREATE)
	b.str(unix.NFTA_SET_TABLE, b.table)
	b.str(unix.NFTA_SET_NAME, s.name)
	b.u32(unix.NFTA_SET_FLAGS, s.flags)
	b.u32(unix.NFTA_SET_KEY_TYPE, s.keyType)
	b.u32(unix.NFTA_SET_KEY_LEN, s.keyLen)
	if s.flags&unix.NFT_SET_MAP != 0 {
		b.u32(unix.NFTA_SET_DATA_TYPE, s.dataType)
		b.u32(unix.NFTA_SET_DATA_LEN, s.dataLen)
	}
	b.u32(unix.NFTA_SET_ID, s.id)
	if s.size > 0 {
		b.nest(unix.NFTA_SET_DESC, func() { b.u32(unix.NFTA_SET_DESC_SIZE, uint32(s.size)) })
	}
	if len(s.fields) > 0 {
		b.nest(unix.NFTA_SET_DESC, func() { b.fieldLengths(s.fields) })
	}
	if s.timeoutMS > 0 {
		b.bytes(unix.NFTA_SET_TIMEOUT, binary.BigEndian.AppendUint64(nil, s.timeoutMS))
	}
	// NFTNL_UDATA_SET_KEYBYTEORDER: 1 host, 2 network.
	order := uint32(2)
	if s.hostOrder {
		order = 1
	}
	user := binary.NativeEndian.AppendUint32([]byte{0, 4}, order)
	if s.comment != "" {
		user = append(user, comment(commentOfSet, s.comment)...)
	}
	b.bytes(unix.NFTA_SET_USERDATA, user)
	b.end()
}

func (b *batch) deleteSet(name string) {
	b.nft(unix.NFT_MSG_DELSET, 0)
	b.str(unix.NFTA_SET_TABLE, b.table)
	b.str(unix.NFTA_SET_NAME, name)
	b.end()
}

func (b *batch) flushSet(name string) {
	b.nft(unix.NFT_MSG_DELSETELEM, 0)
	b.str(unix.NFTA_SET_ELEM_LIST_TABLE, b.table)
	b.str(unix.NFTA_SET_ELEM_LIST_SET, name)
	b.end()
}

// elements adds or deletes elements of a set, in as many messages as needed. id
// is the id of an anonymous set, 0 otherwise.
func (b *batch) elements(typ uint16, set string, id uint32, elems []element) {
	for len(elems) > 0 {
		var flags uint16
		if typ == unix.NFT_MSG_NEWSETELEM {
			flags = unix.NLM_F_CREATE
		}
		b.nft(typ, flags)
		b.str(unix.NFTA_SET_ELEM_LIST_TABLE, b.table)
		b.str(unix.NFTA_SET_ELEM_LIST_SET, set)
		if id != 0 {
			b.u32(unix.NFTA_SET_ELEM_LIST_SET_ID, id)
		}
		b.nest(unix.NFTA_SET_ELEM_LIST_ELEMENTS, func() {
			for at := len(b.buf); len(elems) > 0 && len(b.buf)-at < elementsBytes; elems = elems[1:] {
				b.nest(unix.NFTA_LIST_ELEM, func() { b.element(elems[0], typ == unix.NFT_MSG_NEWSETELEM) })
			}
		})
		b.end()
	}
}

func (b *batch) element(e element, withValue bool) {
	b.nest(unix.NFTA_SET_ELEM_KEY, func() { b.bytes(unix.NFTA_DATA_VALUE, []byte(e.key)) })
	if e.keyEnd != "" {
		b.nest(nftaSetElemKeyEnd, func() { b.bytes(unix.NFTA_DATA_VALUE, []byte(e.keyEnd)) })
	}
	if e.flags != 0 {
		b.u32(unix.NFTA_SET_ELEM_FLAGS, e.flags)
	}
	if !withValue {
		return
	}
	switch {
	case e.data != nil:
		b.nest(unix.NFTA_SET_ELEM_DATA, func() { b.bytes(unix.NFTA_DATA_VALUE, e.data) })
	case e.verdict != (verdict{}):
		b.nest(unix.NFTA_SET_ELEM_DATA, func() {
			b.nest(unix.NFTA_DATA_VERDICT, func() {
				b.u32(unix.NFTA_VERDICT_CODE, uint32(e.verdict.code()))
				if e.verdict.chain != "" {
					b.str(unix.NFTA_VERDICT_CHAIN, e.verdict.chain)
				}
			})
		})
	}
	if e.userdata != nil {
		b.bytes(unix.NFTA_SET_ELEM_USERDATA, e.userdata)
	} else if e.comment != "" {
		b.bytes(unix.NFTA_SET_ELEM_USERDATA, comment(commentOfElement, e.comment))
	}
}

// verdict is where a map sends packets: to a chain for good, or nowhere.
type verdict struct {
	chain string
	drop  bool
}

func (v verdict) code() int32 {
	if v.drop {
		return int32(expr.VerdictDrop)
	}
	return int32(expr.VerdictGoto)
}

// element is one element of a set or map.
type element struct {
	key      string // bytes
	keyEnd   string // of a range in a concatenation, else empty
	flags    uint32
	data     []byte // of a data map
	verdict  verdict
	comment  string
	userdata []byte // instead of the comment
}
