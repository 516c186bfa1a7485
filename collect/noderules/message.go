package noderules

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/mdlayher/netlink"
)

// message is one decoded nf_tables message. It keeps nothing of the buffer it
// was decoded from.
type message struct {
	kind   uint8
	family uint8
	// genLow is nfgenmsg.res_id: the low 16 bits of the generation that the
	// kernel was at when it wrote the message.
	genLow uint16

	table  string
	chain  string
	set    string
	handle uint64
	flags  uint32 // of a table or a set
	// timeout is for how long an element of the set stays, 0 for ever.
	timeout time.Duration
	hook    *hook // of a base chain

	comment string
	exprs   []expr
	elems   []element

	gen     uint32 // NEWGEN only
	pid     uint32
	process string
}

// hook is where a base chain is attached.
type hook struct {
	num uint32
	typ string // "nat", "filter", "route"
}

// element is one element of a set or map.
type element struct {
	key     []byte
	keyEnd  []byte // of a range in a concatenation
	flags   uint32
	data    []byte
	verdict *verdict
	comment string
}

// verdict is what becomes of a packet, and the chain of a jump or goto.
type verdict struct {
	code  int32
	chain string
}

// errShort says that a datagram or message ends before it should.
var errShort = errors.New("message is cut short")

// split calls f for each netlink message of a datagram: its type and flags and
// what follows the header. It stops at the first error.
func split(b []byte, f func(typ, flags uint16, body []byte) error) error {
	for len(b) > 0 {
		if len(b) < nlHeaderLen {
			return errShort
		}
		n := int(binary.NativeEndian.Uint32(b))
		if n < nlHeaderLen || n > len(b) {
			return errShort
		}
		if err := f(binary.NativeEndian.Uint16(b[4:]), binary.NativeEndian.Uint16(b[6:]), b[nlHeaderLen:n]); err != nil {
			return err
		}
		b = b[min((n+3)&^3, len(b)):]
	}
	return nil
}

// decode decodes the body of one netlink message. ok is false for messages of
// other subsystems.
func decode(typ uint16, body []byte) (m message, ok bool, err error) {
	if typ>>8 != subsysNFTables {
		return message{}, false, nil
	}
	if len(body) < nfnlHeaderLen {
		return message{}, false, errShort
	}
	m.kind = uint8(typ)
	m.family = body[0]
	m.genLow = binary.BigEndian.Uint16(body[2:])
	ad, err := attributes(body[nfnlHeaderLen:])
	if err != nil {
		return message{}, false, fmt.Errorf("nf_tables message %d: %w", m.kind, err)
	}
	switch m.kind {
	case msgNewGen:
		m.decodeGen(ad)
	case msgNewTable, msgDelTable:
		m.decodeTable(ad)
	case msgNewChain, msgDelChain:
		m.decodeChain(ad)
	case msgNewRule, msgDelRule:
		m.decodeRule(ad)
	case msgNewSet, msgDelSet:
		m.decodeSet(ad)
	case msgNewSetElem, msgDelSetElem:
		m.decodeElems(ad)
	default:
		return m, true, nil
	}
	if err := ad.Err(); err != nil {
		return message{}, false, fmt.Errorf("nf_tables message %d: %w", m.kind, err)
	}
	return m, true, nil
}

// attributes reads nf_tables attributes: their numbers are big-endian.
func attributes(b []byte) (*netlink.AttributeDecoder, error) {
	ad, err := netlink.NewAttributeDecoder(b)
	if err != nil {
		return nil, err
	}
	ad.ByteOrder = binary.BigEndian
	return ad, nil
}

func (m *message) decodeGen(ad *netlink.AttributeDecoder) {
	for ad.Next() {
		switch ad.Type() {
		case attrGenID:
			m.gen = ad.Uint32()
		case attrGenPID:
			m.pid = ad.Uint32()
		case attrGenName:
			m.process = ad.String()
		}
	}
}

func (m *message) decodeTable(ad *netlink.AttributeDecoder) {
	for ad.Next() {
		switch ad.Type() {
		case attrTableName:
			m.table = ad.String()
		case attrTableFlags:
			m.flags = ad.Uint32()
		}
	}
}

func (m *message) decodeChain(ad *netlink.AttributeDecoder) {
	var typ string
	for ad.Next() {
		switch ad.Type() {
		case attrChainTable:
			m.table = ad.String()
		case attrChainHandle:
			m.handle = ad.Uint64()
		case attrChainName:
			m.chain = ad.String()
		case attrChainType:
			typ = ad.String()
		case attrChainHook:
			m.hook = &hook{}
			ad.Nested(func(ad *netlink.AttributeDecoder) error {
				for ad.Next() {
					if ad.Type() == attrHookNum {
						m.hook.num = ad.Uint32()
					}
				}
				return nil
			})
		}
	}
	if m.hook != nil {
		m.hook.typ = typ
	}
}

func (m *message) decodeRule(ad *netlink.AttributeDecoder) {
	for ad.Next() {
		switch ad.Type() {
		case attrRuleTable:
			m.table = ad.String()
		case attrRuleChain:
			m.chain = ad.String()
		case attrRuleHandle:
			m.handle = ad.Uint64()
		case attrRuleUserdata:
			m.comment = comment(ad.Bytes())
		case attrRuleExprs:
			if m.kind == msgDelRule {
				continue // its handle says which one goes
			}
			ad.Nested(func(ad *netlink.AttributeDecoder) error {
				for ad.Next() {
					ad.Nested(func(ad *netlink.AttributeDecoder) error {
						m.exprs = append(m.exprs, decodeExpr(ad))
						return nil
					})
				}
				return nil
			})
		}
	}
}

func (m *message) decodeSet(ad *netlink.AttributeDecoder) {
	for ad.Next() {
		switch ad.Type() {
		case attrSetTable:
			m.table = ad.String()
		case attrSetName:
			m.set = ad.String()
		case attrSetFlags:
			m.flags = ad.Uint32()
		case attrSetTimeout:
			m.timeout = time.Duration(ad.Uint64()) * time.Millisecond
		case attrSetHandle:
			m.handle = ad.Uint64()
		}
	}
}

func (m *message) decodeElems(ad *netlink.AttributeDecoder) {
	for ad.Next() {
		switch ad.Type() {
		case attrElemListTable:
			m.table = ad.String()
		case attrElemListSet:
			m.set = ad.String()
		case attrElemListElems:
			ad.Nested(func(ad *netlink.AttributeDecoder) error {
				for ad.Next() {
					ad.Nested(func(ad *netlink.AttributeDecoder) error {
						m.elems = append(m.elems, decodeElem(ad))
						return nil
					})
				}
				return nil
			})
		}
	}
}

func decodeElem(ad *netlink.AttributeDecoder) (e element) {
	for ad.Next() {
		switch ad.Type() {
		case attrElemKey:
			e.key, _ = decodeData(ad)
		case attrElemKeyEnd:
			e.keyEnd, _ = decodeData(ad)
		case attrElemFlags:
			e.flags = ad.Uint32()
		case attrElemData:
			e.data, e.verdict = decodeData(ad)
		case attrElemUserdata:
			e.comment = comment(ad.Bytes())
		}
	}
	return e
}

// decodeData decodes the current attribute as struct nft_data: a value or a
// verdict.
func decodeData(ad *netlink.AttributeDecoder) (data []byte, v *verdict) {
	ad.Nested(func(ad *netlink.AttributeDecoder) error {
		for ad.Next() {
			switch ad.Type() {
			case attrDataValue:
				data = ad.Bytes()
			case attrDataVerdict:
				v = &verdict{}
				ad.Nested(func(ad *netlink.AttributeDecoder) error {
					for ad.Next() {
						switch ad.Type() {
						case attrVerdictCode:
							v.code = int32(ad.Uint32())
						case attrVerdictChain:
							v.chain = ad.String()
						}
					}
					return nil
				})
			}
		}
		return nil
	})
	return data, v
}

// comment finds the comment in user data, which is a list of one-byte type,
// one-byte length, value; type 0 is the comment of rules and of elements alike
// (libnftnl's udata.h).
func comment(b []byte) string {
	for len(b) >= 2 {
		n := int(b[1])
		if len(b) < 2+n {
			return ""
		}
		if b[0] == 0 {
			v := b[2 : 2+n]
			for len(v) > 0 && v[len(v)-1] == 0 {
				v = v[:len(v)-1]
			}
			return string(v)
		}
		b = b[2+n:]
	}
	return ""
}
