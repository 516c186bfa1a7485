package collect

import (
	"time"
	"unicode/utf8"
)

// decoder reads lines as Marshal writes them, without encoding/json, which takes
// several times as long. It knows JSON without spaces, escapes, nulls, unknown or
// repeated names; of anything else it says that it cannot, and encoding/json decides
// what the line is. So what a line means is encoding/json's word alone.
type decoder struct {
	b []byte
	i int
	// names are strings that were read before: most come again. Nil keeps none.
	names map[string]string
}

// maxNames bounds the strings that are kept, longestName each.
const (
	maxNames    = 1 << 14
	longestName = 64
)

// next takes a byte if it is c.
func (d *decoder) next(c byte) bool {
	if d.i < len(d.b) && d.b[d.i] == c {
		d.i++
		return true
	}
	return false
}

// raw takes a string and gives what is between its quotes.
func (d *decoder) raw() ([]byte, bool) {
	if !d.next('"') {
		return nil, false
	}
	ascii := true
	for i := d.i; i < len(d.b); i++ {
		switch c := d.b[i]; {
		case c == '"':
			s := d.b[d.i:i]
			d.i = i + 1
			return s, ascii || utf8.Valid(s)
		case c == '\\' || c < ' ':
			return nil, false
		case c >= utf8.RuneSelf:
			ascii = false
		}
	}
	return nil, false
}

// text takes a string.
func (d *decoder) text() (string, bool) {
	b, ok := d.raw()
	if !ok {
		return "", false
	}
	return d.keep(b), true
}

// keep makes a string, the same as before where it can.
func (d *decoder) keep(b []byte) string {
	if d.names == nil || len(b) > longestName {
		return string(b)
	}
	if s, ok := d.names[string(b)]; ok {
		return s
	}
	if len(d.names) >= maxNames {
		clear(d.names)
	}
	s := string(b)
	d.names[s] = s
	return s
}

// natural takes a number without a sign, a fraction or an exponent.
func (d *decoder) natural() (n uint64, ok bool) {
	from := d.i
	for d.i < len(d.b) && d.b[d.i]-'0' <= 9 {
		digit := uint64(d.b[d.i] - '0')
		if n > (1<<64-1-digit)/10 {
			return 0, false
		}
		n = n*10 + digit
		d.i++
	}
	digits := d.i - from
	if digits == 0 || digits > 1 && d.b[from] == '0' {
		return 0, false
	}
	if d.i < len(d.b) && (d.b[d.i] == '.' || d.b[d.i]|0x20 == 'e') {
		return 0, false
	}
	return n, true
}

// integer takes a number that fits into so many bits.
func (d *decoder) integer(bits int) (int64, bool) {
	minus := d.next('-')
	n, ok := d.natural()
	if !ok || n > 1<<(bits-1)-1 {
		return 0, false // the least of all is encoding/json's
	}
	if minus {
		return -int64(n), true
	}
	return int64(n), true
}

func (d *decoder) truth() (v, ok bool) {
	switch rest := d.b[d.i:]; {
	case len(rest) >= 4 && string(rest[:4]) == "true":
		d.i += 4
		return true, true
	case len(rest) >= 5 && string(rest[:5]) == "false":
		d.i += 5
		return false, true
	}
	return false, false
}

// moment takes a time as encoding/json does.
func (d *decoder) moment(t *time.Time) bool {
	from := d.i
	if _, ok := d.raw(); !ok {
		return false
	}
	return t.UnmarshalJSON(d.b[from:d.i]) == nil
}

// event takes a whole line.
func (d *decoder) event(e *Event) bool {
	var seen uint
	var mk func() Payload
	once := func(bit uint) bool {
		was := seen
		seen |= 1 << bit
		return was != seen
	}
	if !d.next('{') {
		return false
	}
	for first := true; !d.next('}'); first = false {
		if !first && !d.next(',') {
			return false
		}
		name, ok := d.raw()
		if !ok || !d.next(':') {
			return false
		}
		switch string(name) {
		case "seq":
			e.Seq, ok = d.natural()
			ok = ok && once(0)
		case "at":
			ok = d.moment(&e.At) && once(1)
		case "notBefore":
			ok = d.moment(&e.NotBefore) && once(2)
		case "src":
			var s string
			s, ok = d.text()
			e.Source, ok = SourceID(s), ok && once(3)
		case "type":
			var b []byte
			if b, ok = d.raw(); ok {
				mk, ok = payloadTypes[string(b)]
				ok = ok && once(4)
			}
		case "op":
			var s string
			s, ok = d.text()
			e.Op, ok = Op(s), ok && once(5)
		case "obj":
			ok = d.object(&e.Object) && once(6)
		case "uid":
			e.UID, ok = d.text()
			ok = ok && once(7)
		case "rv":
			e.ResourceVersion, ok = d.natural()
			ok = ok && once(8)
		case "data":
			if mk == nil || e.Payload != nil {
				return false
			}
			e.Payload = mk()
			ok = d.payload(e.Payload)
		default:
			return false
		}
		if !ok {
			return false
		}
	}
	if mk == nil || d.i != len(d.b) {
		return false
	}
	if e.Payload == nil {
		e.Payload = mk()
	}
	return true
}
