package noderules

import (
	"bytes"

	"github.com/mdlayher/netlink"
)

// expr is one expression of a rule, with what the layouts look at. Expressions
// of other kinds keep their name only.
type expr struct {
	name string

	set        string   // lookup, dynset; of match and target the name
	verdict    *verdict // immediate
	data       []byte   // immediate, cmp; the mask of bitwise; of match and target their own structure
	sreg, dreg uint32
	// arg is the key of meta, the operation of cmp, the modulus of numgen,
	// the type of nat, the flags of lookup, the base of payload, the revision
	// of match and target, 1 for a bitwise that does more than mask.
	arg    uint32
	offset uint32 // numgen, payload
	size   uint32 // payload, in bytes
	mapped bool   // lookup: the set is a map and its data is used
	nat    *natRegs
}

// natRegs are the registers that a nat expression takes its address and port
// from; 0 when it takes none.
type natRegs struct {
	addrMin, addrMax, protoMin, protoMax uint32
}

func decodeExpr(ad *netlink.AttributeDecoder) (x expr) {
	for ad.Next() {
		switch ad.Type() {
		case attrExprName:
			x.name = intern(ad.String())
		case attrExprData:
			ad.Nested(func(ad *netlink.AttributeDecoder) error {
				x.decode(ad)
				return nil
			})
		}
	}
	return x
}

// intern shares the names that every rule repeats.
func intern(name string) string {
	for _, known := range [...]string{"immediate", "lookup", "numgen", "nat", "meta", "cmp", "payload", "counter", "bitwise", "fib", "dynset", "masq", "reject", "match", "target"} {
		if name == known {
			return known
		}
	}
	return name
}

func (x *expr) decode(ad *netlink.AttributeDecoder) {
	switch x.name {
	case "immediate":
		for ad.Next() {
			switch ad.Type() {
			case attrImmediateDreg:
				x.dreg = ad.Uint32()
			case attrImmediateData:
				x.data, x.verdict = decodeData(ad)
			}
		}
	case "cmp":
		for ad.Next() {
			switch ad.Type() {
			case attrCmpSreg:
				x.sreg = ad.Uint32()
			case attrCmpOp:
				x.arg = ad.Uint32()
			case attrCmpData:
				x.data, _ = decodeData(ad)
			}
		}
	case "meta":
		for ad.Next() {
			switch ad.Type() {
			case attrMetaDreg:
				x.dreg = ad.Uint32()
			case attrMetaKey:
				x.arg = ad.Uint32()
			case attrMetaSreg:
				x.sreg = ad.Uint32()
			}
		}
	case "payload":
		for ad.Next() {
			switch ad.Type() {
			case attrPayloadDreg:
				x.dreg = ad.Uint32()
			case attrPayloadBase:
				x.arg = ad.Uint32()
			case attrPayloadOffset:
				x.offset = ad.Uint32()
			case attrPayloadLen:
				x.size = ad.Uint32()
			}
		}
	case "match", "target":
		for ad.Next() {
			switch ad.Type() {
			case attrCompatName:
				x.set = ad.String()
			case attrCompatRevision:
				x.arg = ad.Uint32()
			case attrCompatInfo:
				ad.Do(func(info []byte) error {
					x.data = xtKeep(x.set, info)
					return nil
				})
			}
		}
	case "lookup":
		for ad.Next() {
			switch ad.Type() {
			case attrLookupSet:
				x.set = ad.String()
			case attrLookupSreg:
				x.sreg = ad.Uint32()
			case attrLookupDreg:
				x.dreg = ad.Uint32()
				x.mapped = true
			case attrLookupFlags:
				x.arg = ad.Uint32()
			}
		}
	case "numgen":
		for ad.Next() {
			switch ad.Type() {
			case attrNumgenDreg:
				x.dreg = ad.Uint32()
			case attrNumgenModulus:
				x.arg = ad.Uint32()
			case attrNumgenOffset:
				x.offset = ad.Uint32()
			}
		}
	case "dynset":
		for ad.Next() {
			if ad.Type() == attrDynsetName {
				x.set = ad.String()
			}
		}
	case "bitwise":
		for ad.Next() {
			switch ad.Type() {
			case attrBitwiseSreg:
				x.sreg = ad.Uint32()
			case attrBitwiseDreg:
				x.dreg = ad.Uint32()
			case attrBitwiseMask:
				x.data, _ = decodeData(ad)
			case attrBitwiseXor:
				if xor, _ := decodeData(ad); len(bytes.Trim(xor, "\x00")) > 0 {
					x.arg = 1
				}
			}
		}
	case "nat":
		x.nat = &natRegs{}
		for ad.Next() {
			switch ad.Type() {
			case attrNATType:
				x.arg = ad.Uint32()
			case attrNATAddrMin:
				x.nat.addrMin = ad.Uint32()
			case attrNATAddrMax:
				x.nat.addrMax = ad.Uint32()
			case attrNATProtoMin:
				x.nat.protoMin = ad.Uint32()
			case attrNATProtoMax:
				x.nat.protoMax = ad.Uint32()
			}
		}
	}
}
