package findings

import (
	"cmp"
	"slices"
	"strings"
)

// Severity is how bad a finding is.
type Severity string

// Error: connections fail, or go where they should not. Warning: they may, or something
// does not work as it should. Info: by design, but good to know.
const (
	Error   Severity = "error"
	Warning Severity = "warning"
	Info    Severity = "info"
)

// rank orders severities, the worst first.
func (s Severity) rank() int { return slices.Index([]Severity{Error, Warning, Info}, s) }

// Worse reports that s is worse than o.
func (s Severity) Worse(o Severity) bool { return s.rank() < o.rank() }

// Code is a kind of finding. Its ID never changes its meaning.
type Code struct {
	ID       string // KC101
	Severity Severity
	Title    string // a few words
	// Means is what it is, Seen how it is recognised, Do what to do about it.
	Means, Seen, Do string
}

// Unseen reports that the code tells what cannot be seen, which is a reason to doubt
// that there is nothing else, and not itself something wrong with Services.
func (c *Code) Unseen() bool { return strings.HasPrefix(c.ID, "KC4") }

var codes []*Code

// code registers one.
func code(c Code) *Code {
	codes = append(codes, &c)
	return &c
}

// Codes lists all codes by ID.
func Codes() []*Code {
	out := slices.Clone(codes)
	slices.SortFunc(out, func(a, b *Code) int { return cmp.Compare(a.ID, b.ID) })
	return out
}

// Lookup finds a code by its ID, in any case; nil when there is none.
func Lookup(id string) *Code {
	for _, c := range codes {
		if strings.EqualFold(c.ID, id) {
			return c
		}
	}
	return nil
}
