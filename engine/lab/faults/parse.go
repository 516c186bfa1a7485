package faults

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Setting is one fault and what it is set to. Name and Target together tell one from
// another: a fault can be set for two nodes, differently.
type Setting struct {
	Name string
	// Amount as it was written; "off" clears: with a Target that one, without all
	// of the name.
	Amount string
	// Target is what it is limited to; "" for no limit.
	Target string
}

// String gives it as it is written, NAME=AMOUNT@TARGET.
func (s Setting) String() string { return s.Name + "=" + s.value() }

func (s Setting) value() string {
	if s.Target == "" {
		return s.Amount
	}
	return s.Amount + "@" + s.Target
}

// Off reports that it clears.
func (s Setting) Off() bool { return slices.Contains(off, s.Amount) }

// Parse reads NAME=VALUE, where VALUE is AMOUNT or AMOUNT@TARGET, or several with ";"
// between them. The error names the fault, what is wrong, and the way out.
func Parse(text string) ([]Setting, error) {
	name, value, ok := strings.Cut(text, "=")
	name = strings.TrimSpace(name)
	d, err := Lookup(name)
	if err != nil {
		return nil, err
	}
	if !ok || strings.TrimSpace(value) == "" {
		return nil, fmt.Errorf("fault %s: what is it to be? Write %s, for instance %s", name, d.Syntax(), d.Example)
	}
	var out []Setting
	for _, part := range strings.Split(value, ";") {
		s, err := parseOne(d, part)
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}

// Syntax is how the fault is written: "sync-delay=DURATION[@NODE]".
func (d Definition) Syntax() string {
	s := d.Name + "=" + d.Value
	if d.Target != "" {
		s += "[@" + d.Target + "]"
	}
	return s
}

func parseOne(d Definition, text string) (Setting, error) {
	amount, target, limited := strings.Cut(strings.TrimSpace(text), "@")
	s := Setting{Name: d.Name, Amount: strings.TrimSpace(amount), Target: strings.TrimSpace(target)}
	if limited && s.Target == "" {
		return s, fmt.Errorf("fault %s: nothing stands behind the @: write %s, for instance %s", d.Name, d.Syntax(), d.Example)
	}
	if s.Target != "" {
		if _, err := d.target(s.Target); err != nil {
			return s, fmt.Errorf("fault %s: %w; for instance %s", d.Name, err, d.Example)
		}
		s.Target = canonical(s.Target)
	}
	if s.Off() {
		s.Amount = "off"
		return s, nil
	}
	if _, err := d.amount(s.Amount); err != nil {
		return s, fmt.Errorf("fault %s: %w; for instance %s", d.Name, err, d.Example)
	}
	return s, nil
}

// ParseAll reads several of NAME=VALUE; the error joins those of all that are wrong.
func ParseAll(texts []string) (out []Setting, err error) {
	for _, t := range texts {
		s, wrong := Parse(t)
		out, err = append(out, s...), errors.Join(err, wrong)
	}
	return out, err
}
