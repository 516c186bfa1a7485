package process

import (
	"bytes"
	"io"
	"slices"
	"sync"
	"unicode/utf8"
)

const (
	// tailLines and tailWidth bound what an error quotes.
	tailLines = 6
	tailWidth = 300
	// lineBytes bounds a line of the log: a longer one is cut into several.
	lineBytes = 16 << 10
)

// lines hands a program's output on by whole lines, with its name before each,
// and keeps the last ones.
type lines struct {
	name string
	to   io.Writer

	mu   sync.Mutex
	part []byte
	last []string
}

// Write implements io.Writer. It does not fail: that the log cannot be written
// must not end the program.
func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.part = append(l.part, p...)
	for {
		n := bytes.IndexByte(l.part, '\n')
		if n < 0 && len(l.part) < lineBytes {
			return len(p), nil
		}
		end := n + 1
		if n < 0 || n > lineBytes {
			n, end = lineBytes, lineBytes
		}
		l.line(l.part[:n])
		l.part = append(l.part[:0], l.part[end:]...)
	}
}

// flush ends a last line that has no end.
func (l *lines) flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.part) > 0 {
		l.line(l.part)
		l.part = nil
	}
}

func (l *lines) line(b []byte) {
	b = bytes.TrimRight(b, "\r\t ")
	if len(b) == 0 {
		return
	}
	_, _ = l.to.Write(slices.Concat([]byte(l.name), []byte(": "), b, []byte("\n")))
	kept := string(b)
	if len(b) > tailWidth {
		n := tailWidth
		for n > 0 && !utf8.RuneStart(b[n]) {
			n--
		}
		kept = string(b[:n]) + "…"
	}
	l.last = append(l.last, kept)
	if over := len(l.last) - tailLines; over > 0 {
		l.last = slices.Delete(l.last, 0, over)
	}
}

func (l *lines) tail() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.last)
}
