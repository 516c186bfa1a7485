package noderules

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/collect/netns"
)

// The calls that iptables-legacy itself makes.
const (
	xtGetInfo    = 64 // IPT_SO_GET_INFO, IP6T_SO_GET_INFO
	xtGetEntries = 65 // IPT_SO_GET_ENTRIES, IP6T_SO_GET_ENTRIES
	xtTableName  = 32 // XT_TABLE_MAXNAMELEN
	xtInfoSize   = 84 // struct ipt_getinfo
	xtEntriesAt  = 40 // struct ipt_get_entries: name, size, then entries, aligned
)

// legacyFamilies are where the names of a family's tables stand, and how its
// sockets are made.
var legacyFamilies = []struct {
	family        uint8
	names         string
	domain, level int
}{
	{familyIPv4, "/proc/thread-self/net/ip_tables_names", unix.AF_INET, unix.SOL_IP},
	{familyIPv6, "/proc/thread-self/net/ip6_tables_names", unix.AF_INET6, unix.SOL_IPV6},
}

// legacy reads the tables of legacy iptables. They have no notifications and no
// generations: whoever wants to know has to look. Asking for a table makes the
// kernel create it (and attach it to the packets' path), so the names of those
// that exist are read first. It is not safe for concurrent use.
type legacy struct {
	ns    int // of the namespace; -1: where the caller is
	clock collect.Clock
	// begun is when the last successful reading began, and read when it ended:
	// what was true at some moment between the two.
	begun, read time.Time
	blocks      map[tableKey]*legacyBlock
	tables      map[tableKey]*table
	// err is why the last reading failed.
	err error
}

func openLegacy(o Options) (*legacy, error) {
	l := &legacy{ns: -1, clock: o.Clock, blocks: map[tableKey]*legacyBlock{}, tables: map[tableKey]*table{}}
	if o.NetNS <= 0 {
		return l, nil
	}
	var err error
	if l.ns, err = unix.FcntlInt(uintptr(o.NetNS), unix.F_DUPFD_CLOEXEC, 0); err != nil {
		return nil, fmt.Errorf("open the network namespace of %s for legacy iptables: %w", o.Node, err)
	}
	return l, nil
}

func (l *legacy) close() error {
	if l.ns < 0 {
		return nil
	}
	return unix.Close(l.ns)
}

// inside runs f in the namespace. Entering one takes CAP_SYS_ADMIN, even the one in
// which the process is (setns(2)), and an agent does not have that.
func (l *legacy) inside(f func() error) error {
	if l.ns < 0 {
		return f()
	}
	return netns.Do(l.ns, f)
}

// there tells whether the last reading found any tables.
func (l *legacy) there() bool { return len(l.tables) > 0 }

// poll reads the tables and tells whether they are others than before, or the
// reading fails as it did not before (or no longer). A table that did not change
// stays the same *table.
func (l *legacy) poll() (changed bool) {
	begun := l.clock.Now()
	now := map[tableKey]*legacyBlock{}
	err := l.inside(func() error {
		for _, f := range legacyFamilies {
			names, err := readNames(f.names)
			if err != nil {
				return err
			}
			for _, name := range names {
				if name != "nat" && name != "filter" {
					continue
				}
				b, err := readLegacy(f.family, f.domain, f.level, name)
				if err != nil {
					return fmt.Errorf("table %s: %w", name, err)
				}
				now[tableKey{f.family, name}] = b
			}
		}
		return nil
	})
	was := l.err
	if l.err = err; err != nil {
		return was == nil || was.Error() != err.Error()
	}
	tables := map[tableKey]*table{}
	for key, b := range now {
		if old := l.blocks[key]; old != nil && old.equal(b) {
			tables[key] = l.tables[key]
			continue
		}
		t, err := b.decode()
		if err != nil {
			l.err = fmt.Errorf("table %s: %w", key.name, err)
			return was == nil || was.Error() != l.err.Error()
		}
		tables[key], changed = t, true
	}
	changed = changed || was != nil || len(now) != len(l.blocks)
	l.blocks, l.tables = now, tables
	l.begun, l.read = begun, l.clock.Now()
	return changed
}

// readNames reads the names of a family's tables. Without the module there are
// none.
func readNames(path string) ([]string, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	defer unix.Close(fd)
	// A few names of under 32 bytes.
	buf := make([]byte, 4096)
	n, err := unix.Read(fd, buf)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return strings.Fields(string(buf[:n])), nil
}

// legacyTries bounds how often a table is read again because it was replaced
// between the two calls.
const legacyTries = 50

// readLegacy reads one table.
func readLegacy(family uint8, domain, level int, name string) (*legacyBlock, error) {
	// Any socket of the family will do; a raw one would need another right.
	fd, err := unix.Socket(domain, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	for range legacyTries {
		info := make([]byte, xtInfoSize)
		copy(info, name)
		if err := getsockopt(fd, level, xtGetInfo, info); err != nil {
			return nil, err
		}
		b := &legacyBlock{family: family, table: name, hooks: native32(info, xtTableName)}
		for i := range b.entries {
			b.entries[i] = native32(info, xtTableName+4+4*i)
		}
		size := native32(info, xtInfoSize-4)
		buf := make([]byte, xtEntriesAt+int(size))
		copy(buf, name)
		putNative32(buf, xtTableName, size)
		err := getsockopt(fd, level, xtGetEntries, buf)
		if errors.Is(err, unix.EAGAIN) {
			continue // of another size by now
		}
		if err != nil {
			return nil, err
		}
		b.data = buf[xtEntriesAt:]
		return b, b.settle()
	}
	return nil, errors.New("it is replaced faster than it can be read")
}

func native32(b []byte, at int) uint32 { return binary.NativeEndian.Uint32(b[at:]) }

func putNative32(b []byte, at int, v uint32) { binary.NativeEndian.PutUint32(b[at:], v) }

func getsockopt(fd, level, name int, buf []byte) error {
	n := uint32(len(buf))
	_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), uintptr(level), uintptr(name),
		uintptr(unsafe.Pointer(&buf[0])), uintptr(unsafe.Pointer(&n)), 0)
	if errno != 0 {
		return errno
	}
	return nil
}
