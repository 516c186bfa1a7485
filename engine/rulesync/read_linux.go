package rulesync

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/nftables/expr"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// present is what the table of one family holds.
type present struct {
	chains   []string // of Services
	affinity []string // sets
	elements map[slot]verdict
}

// read dumps the table as far as a full sync needs it. Consistency is up to the
// transaction that follows: it is refused when the generation moved.
func (t *kernelTable) read(f family) (present, error) {
	p := present{elements: map[slot]verdict{}}
	err := t.sock.request(f.proto, unix.NFT_MSG_GETCHAIN, unix.NLM_F_DUMP, nil, func(m message) error {
		var table, name string
		err := attributes(m, func(ad *netlink.AttributeDecoder) {
			switch ad.Type() {
			case unix.NFTA_CHAIN_TABLE:
				table = ad.String()
			case unix.NFTA_CHAIN_NAME:
				name = ad.String()
			}
		})
		if table == tableName && ofService(name) {
			p.chains = append(p.chains, name)
		}
		return err
	})
	if err != nil {
		return p, fmt.Errorf("list chains: %w", err)
	}
	sets, err := t.sock.sets(f.proto, tableName)
	if err != nil {
		return p, err
	}
	for _, s := range sets {
		if strings.HasPrefix(s, prefixAffinity) {
			p.affinity = append(p.affinity, s)
		}
	}
	for _, c := range containers {
		if !slices.Contains(sets, c.name) {
			continue
		}
		err := t.sock.elements(f.proto, tableName, c.name, func(e element) { p.elements[slot{c.name, e.key}] = e.verdict })
		if err != nil {
			return p, err
		}
	}
	return p, nil
}

// sets lists the sets and maps of a table; none when there is no such table.
func (s *socket) sets(family byte, table string) (names []string, err error) {
	ask := func(b *batch) { b.str(unix.NFTA_SET_TABLE, table) }
	err = s.request(family, unix.NFT_MSG_GETSET, unix.NLM_F_DUMP, ask, func(m message) error {
		return attributes(m, func(ad *netlink.AttributeDecoder) {
			if ad.Type() == unix.NFTA_SET_NAME {
				names = append(names, ad.String())
			}
		})
	})
	if err != nil && !errors.Is(err, unix.ENOENT) {
		return nil, fmt.Errorf("list sets: %w", err)
	}
	return names, nil
}

// elements calls each for each element of a set or map.
func (s *socket) elements(family byte, table, set string, each func(element)) error {
	ask := func(b *batch) {
		b.str(unix.NFTA_SET_ELEM_LIST_TABLE, table)
		b.str(unix.NFTA_SET_ELEM_LIST_SET, set)
	}
	err := s.request(family, unix.NFT_MSG_GETSETELEM, unix.NLM_F_DUMP, ask, func(m message) error {
		return attributes(m, func(ad *netlink.AttributeDecoder) {
			if ad.Type() != unix.NFTA_SET_ELEM_LIST_ELEMENTS {
				return
			}
			ad.Nested(func(list *netlink.AttributeDecoder) error {
				for list.Next() {
					list.Nested(func(e *netlink.AttributeDecoder) error {
						each(readElement(e))
						return nil
					})
				}
				return nil
			})
		})
	})
	if err != nil {
		return fmt.Errorf("list elements of %s: %w", set, err)
	}
	return nil
}

func readElement(ad *netlink.AttributeDecoder) (e element) {
	for ad.Next() {
		switch ad.Type() {
		case unix.NFTA_SET_ELEM_KEY:
			key, _ := readData(ad)
			e.key = string(key)
		case nftaSetElemKeyEnd:
			end, _ := readData(ad)
			e.keyEnd = string(end)
		case unix.NFTA_SET_ELEM_DATA:
			e.data, e.verdict = readData(ad)
		case unix.NFTA_SET_ELEM_USERDATA:
			e.comment = readComment(ad.Bytes())
		}
	}
	return e
}

// readData reads the current attribute as struct nft_data.
func readData(ad *netlink.AttributeDecoder) (data []byte, v verdict) {
	ad.Nested(func(d *netlink.AttributeDecoder) error {
		for d.Next() {
			switch d.Type() {
			case unix.NFTA_DATA_VALUE:
				data = d.Bytes()
			case unix.NFTA_DATA_VERDICT:
				d.Nested(func(vd *netlink.AttributeDecoder) error {
					v = readVerdict(vd)
					return nil
				})
			}
		}
		return nil
	})
	return data, v
}

// readComment is the reverse of comment; other user data is left out.
func readComment(b []byte) string {
	if len(b) < 3 || b[0] != commentOfElement || len(b) < 2+int(b[1]) || b[1] == 0 {
		return ""
	}
	return string(b[2 : 1+int(b[1])])
}

func readVerdict(ad *netlink.AttributeDecoder) (v verdict) {
	for ad.Next() {
		switch ad.Type() {
		case unix.NFTA_VERDICT_CODE:
			v.drop = int32(ad.Uint32()) == int32(expr.VerdictDrop)
		case unix.NFTA_VERDICT_CHAIN:
			v.chain = ad.String()
		}
	}
	return v
}

// attributes calls each for each attribute of an nf_tables message.
func attributes(m message, each func(*netlink.AttributeDecoder)) error {
	const nfgenmsg = 4
	if len(m.data) < nfgenmsg {
		return errors.New("short nf_tables message")
	}
	ad, err := netlink.NewAttributeDecoder(m.data[nfgenmsg:])
	if err != nil {
		return err
	}
	ad.ByteOrder = binary.BigEndian
	for ad.Next() {
		each(ad)
	}
	return ad.Err()
}

// generation asks for the current rule generation.
func (s *socket) generation() (gen uint32, err error) {
	err = s.request(unix.NFPROTO_UNSPEC, unix.NFT_MSG_GETGEN, 0, nil, func(m message) error {
		return attributes(m, func(ad *netlink.AttributeDecoder) {
			if ad.Type() == unix.NFTA_GEN_ID {
				gen = ad.Uint32()
			}
		})
	})
	return gen, err
}
