package noderules

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kconverge/kconverge/collect"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// query asks the kernel about rules: its generation, and whole tables. It is
// not safe for concurrent use.
type query struct {
	conn  *netlink.Conn
	clock collect.Clock
}

func openQuery(o Options) (*query, error) {
	conn, err := dial(o.NetNS)
	if err != nil {
		return nil, fmt.Errorf("open a netlink socket to read the rules of %s: %w", o.Node, err)
	}
	return &query{conn: conn, clock: o.Clock}, nil
}

func (q *query) close() error { return q.conn.Close() }

// ask sends one request and hands each decoded answer to f. The messages are
// not kept.
func (q *query) ask(kind uint8, flags netlink.HeaderFlags, family uint8, attrs []netlink.Attribute, f func(message) error) error {
	body := make([]byte, nfnlHeaderLen)
	body[0] = family
	if len(attrs) > 0 {
		b, err := netlink.MarshalAttributes(attrs)
		if err != nil {
			return err
		}
		body = append(body, b...)
	}
	req := netlink.Message{
		Header: netlink.Header{Type: netlink.HeaderType(subsysNFTables<<8 | uint16(kind)), Flags: netlink.Request | flags},
		Data:   body,
	}
	req, err := q.conn.Send(req)
	if err != nil {
		return err
	}
	// Every answer is read, whatever f says: what is left would answer the
	// next request.
	var failed error
	for msg, err := range q.conn.ReceiveIter() {
		if err != nil {
			return err
		}
		if failed != nil || msg.Header.Sequence != req.Header.Sequence {
			continue
		}
		if msg.Header.Flags&netlink.DumpInterrupted != 0 {
			failed = errUnsettled
			continue
		}
		m, ok, err := decode(uint16(msg.Header.Type), msg.Data)
		if err == nil && ok {
			err = f(m)
		}
		failed = err
	}
	return failed
}

// generation asks for the id of the generation in force.
func (q *query) generation() (uint32, error) {
	var gen uint32
	found := false
	err := q.ask(msgGetGen, 0, unix.AF_UNSPEC, nil, func(m message) error {
		if m.kind == msgNewGen {
			gen, found = m.gen, true
		}
		return nil
	})
	if err == nil && !found {
		err = errors.New("no answer")
	}
	if err != nil {
		return 0, fmt.Errorf("ask for the rule generation: %w", err)
	}
	return gen, nil
}

// errUnsettled says that the rules changed while they were dumped.
var errUnsettled = errors.New("the rules changed during the dump")

// snapshot is the content of the claimed tables.
type snapshot struct {
	// from and gen are the generations before and after the dump. When they
	// differ (bridged), the content is somewhere between the two, and applying
	// the generations after from, up to gen, makes it that of gen.
	from, gen uint32
	tables    []*table
	// gen was in force at some time from sure on and by at; everything
	// committed by sure is part of it.
	sure, at time.Time
}

// dump reads the claimed tables until one generation covers everything, at most
// the given number of times (0: as often as it takes). Its error wraps
// errUnsettled when that was not enough.
func (q *query) dump(ctx context.Context, tries int) (*snapshot, error) {
	for n := 1; ; n++ {
		s, err := q.dumpOnce()
		if err == nil {
			return s, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if !unsettled(err) || n == tries {
			return nil, fmt.Errorf("dump the rules: %w", err)
		}
	}
}

// unsettled tells errors that a change during the dump explains: a set or chain
// can go between two requests.
func unsettled(err error) bool {
	return errors.Is(err, errUnsettled) || errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EINTR)
}

// bridge reads the claimed tables while they change: each request is repeated
// until one generation covers it (a list that changes while it is walked can
// lack elements that did not change), but different requests may see different
// generations. What changed meanwhile has to be applied from the
// notifications, which say it again.
func (q *query) bridge(ctx context.Context) (*snapshot, error) {
	from, err := q.generation()
	if err != nil {
		return nil, err
	}
	s := &snapshot{from: from, gen: from}
	for _, l := range layouts {
		if l.polled {
			continue
		}
		for _, key := range l.tables {
			t, err := q.dumpTable(key, func(kind uint8, attrs []netlink.Attribute, f func(message)) error {
				return q.uniform(ctx, &s.gen, kind, key.family, attrs, f)
			})
			if err != nil {
				return nil, fmt.Errorf("dump the rules while they change: %w", err)
			}
			s.tables = append(s.tables, t)
		}
	}
	s.sure = q.clock.Now()
	s.gen, err = q.generation()
	s.at = q.clock.Now()
	return s, err
}

// uniformTries bounds how often one request is repeated.
const uniformTries = 100

// uniform hands over the answers of one dump request once the generation was the
// same before and after it. gen is the last one known, and is kept up to date.
// That the answers all carry one generation is not enough: elements at the end
// can be passed over without a message. What does not exist (any more) has no
// answers.
func (q *query) uniform(ctx context.Context, gen *uint32, kind, family uint8, attrs []netlink.Attribute, f func(message)) error {
	for range uniformTries {
		if err := ctx.Err(); err != nil {
			return err
		}
		var answers []message
		err := q.ask(kind, netlink.Dump, family, attrs, func(m message) error {
			if m.genLow != uint16(*gen) {
				return errUnsettled
			}
			answers = append(answers, m)
			return nil
		})
		gone := errors.Is(err, unix.ENOENT)
		if err != nil && !unsettled(err) {
			return err
		}
		before := *gen
		after, genErr := q.generation()
		if genErr != nil {
			return genErr
		}
		*gen = after
		switch {
		case gone:
			return nil
		case err == nil && after == before:
			for _, m := range answers {
				f(m)
			}
			return nil
		}
	}
	return errUnsettled
}

func (q *query) dumpOnce() (*snapshot, error) {
	gen, err := q.generation()
	if err != nil {
		return nil, err
	}
	s := &snapshot{from: gen, gen: gen}
	for _, l := range layouts {
		if l.polled {
			continue
		}
		for _, key := range l.tables {
			// Dumps of set elements never carry the "interrupted" flag, but
			// every message tells the low bits of the generation it was
			// written at.
			t, err := q.dumpTable(key, func(kind uint8, attrs []netlink.Attribute, f func(message)) error {
				return q.ask(kind, netlink.Dump, key.family, attrs, func(m message) error {
					if m.genLow != uint16(gen) {
						return errUnsettled
					}
					f(m)
					return nil
				})
			})
			if err != nil {
				return nil, err
			}
			s.tables = append(s.tables, t)
		}
	}
	s.sure = q.clock.Now()
	s.at = s.sure // the generation is the same before and after this moment
	after, err := q.generation()
	if err != nil {
		return nil, err
	}
	if after != gen {
		return nil, errUnsettled
	}
	return s, nil
}

// dumpTable asks for the parts of one table.
func (q *query) dumpTable(key tableKey, dump func(kind uint8, attrs []netlink.Attribute, f func(message)) error) (*table, error) {
	t := newTable(key)
	apply := func(m message) {
		if m.table == key.name && m.family == key.family {
			t.apply(&m)
		}
	}
	if err := dump(msgGetTable, nil, apply); err != nil || !t.exists {
		return t, err
	}
	if err := dump(msgGetChain, nil, apply); err != nil {
		return nil, err
	}
	if err := dump(msgGetRule, []netlink.Attribute{text(attrRuleTable, key.name)}, apply); err != nil {
		return nil, err
	}
	if t.xt {
		return t, nil
	}
	if err := dump(msgGetSet, []netlink.Attribute{text(attrSetTable, key.name)}, apply); err != nil {
		return nil, err
	}
	for name, s := range t.sets {
		if !s.wanted() {
			continue
		}
		attrs := []netlink.Attribute{text(attrElemListTable, key.name), text(attrElemListSet, name)}
		if err := dump(msgGetSetElem, attrs, apply); err != nil {
			return nil, err
		}
	}
	return t, nil
}

func text(typ uint16, s string) netlink.Attribute {
	return netlink.Attribute{Type: typ, Data: append([]byte(s), 0)}
}

// Read takes one consistent dump and resolves it: a Rules payload with
// Baseline. It returns when one generation covered the whole dump, or with
// ctx's error. It needs CAP_NET_ADMIN in the namespace.
func Read(ctx context.Context, o Options) (collect.Rules, error) {
	o = o.withDefaults()
	q, err := openQuery(o)
	if err != nil {
		return collect.Rules{}, err
	}
	defer q.close()
	t, err := readWithLegacy(ctx, o, q)
	if err != nil {
		return collect.Rules{}, readError(o, err)
	}
	return *o.baseline(t), nil
}

// readError adds the way out to what the kernel refused.
func readError(o Options, err error) error {
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) {
		return fmt.Errorf("rules of %s: %w: run as root or with CAP_NET_ADMIN in the node's network namespace", o.Node, err)
	}
	return fmt.Errorf("rules of %s: %w", o.Node, err)
}
