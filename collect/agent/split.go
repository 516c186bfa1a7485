package agent

import (
	"encoding/json"
	"fmt"
	"math"

	"github.com/kconverge/kconverge/collect"
)

// MaxLine is the longest line that an agent prints, in bytes with the newline.
// Container runtimes cut what is longer (containerd's
// max_container_log_line_size is 16 KiB by default).
const MaxLine = 16<<10 - 1

const (
	// partRoom is what the contents of one line may take; the rest is for
	// the line's head.
	partRoom = 14 << 10
	// maxAddrs is how many addresses and sources of one port go into one part: the
	// longest takes about 60 bytes.
	maxAddrs = 150
	// maxText bounds a single text of a list.
	maxText = 1 << 10
)

// split turns an event whose line would be too long into several with the same
// head, each a part. Other events come back as they are. It fails for what takes
// more than a line even so.
func split(e collect.Event) ([]collect.Event, error) {
	n, err := length(e)
	if err != nil {
		return nil, err
	}
	if n <= MaxLine {
		return []collect.Event{e}, nil
	}
	var payloads []collect.Payload
	switch p := e.Payload.(type) {
	case *collect.Rules:
		payloads, err = splitRules(p)
	case *collect.Keyframe:
		payloads, err = splitKeyframe(p)
	case *collect.SourceState:
		q := *p
		q.Detail = cut(q.Detail)
		payloads = []collect.Payload{&q}
	case *collect.Gap:
		q := *p
		q.Why = cut(q.Why)
		payloads = []collect.Payload{&q}
	case *collect.ProxyState:
		q := *p
		q.Why = cut(q.Why)
		payloads = []collect.Payload{&q}
	default:
		err = tooLong(e, n)
	}
	if err != nil {
		return nil, err
	}
	out := make([]collect.Event, len(payloads))
	for i, p := range payloads {
		out[i] = e
		out[i].Payload = p
		if n, err := length(out[i]); err != nil {
			return nil, err
		} else if n > MaxLine {
			return nil, tooLong(out[i], n)
		}
	}
	return out, nil
}

// length is how many bytes the event's line takes at most, with the newline: its
// number is given later.
func length(e collect.Event) (int, error) {
	e.Seq = math.MaxUint64
	line, err := collect.Marshal(e)
	return len(line) + 1, err
}

func tooLong(e collect.Event, n int) error {
	return fmt.Errorf("%s event of %s takes %d bytes, more than a line's %d", e.Payload.Type(), e.Source, n, MaxLine)
}

func cut(s string) string {
	if len(s) <= maxText {
		return s
	}
	return s[:maxText] + "…"
}

func splitRules(r *collect.Rules) ([]collect.Payload, error) {
	ports, err := pack(r.Ports, chunkPort)
	if err != nil {
		return nil, err
	}
	texts, err := packTexts(r.Unknown)
	if err != nil {
		return nil, err
	}
	var out []collect.Payload
	head := collect.Rules{
		Node: r.Node, Generation: r.Generation, Layout: r.Layout, NoLayout: cut(r.NoLayout), Process: r.Process, PID: r.PID,
		Baseline: r.Baseline, Ignored: r.Ignored, Parts: len(ports) + len(texts),
	}
	for i := range head.Parts {
		q := head
		q.Part = i + 1
		if i < len(ports) {
			q.Ports = ports[i]
		} else {
			q.Unknown = texts[i-len(ports)]
		}
		out = append(out, &q)
	}
	return out, nil
}

func splitKeyframe(k *collect.Keyframe) ([]collect.Payload, error) {
	ports, err := pack(k.Ports, chunkKeyPort)
	if err != nil {
		return nil, err
	}
	texts, err := packTexts(k.Unknown)
	if err != nil {
		return nil, err
	}
	var out []collect.Payload
	head := collect.Keyframe{
		Node: k.Node, Generation: k.Generation, Layout: k.Layout, NoLayout: cut(k.NoLayout), Parts: len(ports) + len(texts),
	}
	for i := range head.Parts {
		q := head
		q.Part = i + 1
		if i < len(ports) {
			q.Ports = ports[i]
		} else {
			q.Unknown = texts[i-len(ports)]
		}
		out = append(out, &q)
	}
	return out, nil
}

func packTexts(texts []string) ([][]string, error) {
	return pack(texts, func(s string) []string { return []string{cut(s)} })
}

// pack groups items, each cut into chunks that fit a line, so that no group
// takes more than partRoom.
func pack[T any](items []T, chunks func(T) []T) (groups [][]T, err error) {
	room := 0
	for _, item := range items {
		for _, c := range chunks(item) {
			b, err := json.Marshal(c)
			if err != nil {
				return nil, err
			}
			if n := len(b) + 1; n > room || len(groups) == 0 {
				groups, room = append(groups, nil), partRoom
			}
			room -= len(b) + 1
			last := &groups[len(groups)-1]
			*last = append(*last, c)
		}
	}
	return groups, nil
}

// chunkPort cuts the lists of a port that has many addresses.
func chunkPort(p collect.RulePort) []collect.RulePort {
	if len(p.Frontends)+len(p.Endpoints)+len(p.Sources) <= maxAddrs {
		return []collect.RulePort{p}
	}
	bare := p // what is no list is told with every chunk
	bare.Frontends, bare.Endpoints, bare.Sources = nil, nil, nil
	var out []collect.RulePort
	add := func(set func(*collect.RulePort)) {
		c := bare
		set(&c)
		out = append(out, c)
	}
	for _, f := range chunk(p.Frontends) {
		add(func(c *collect.RulePort) { c.Frontends = f })
	}
	for _, e := range chunk(p.Endpoints) {
		add(func(c *collect.RulePort) { c.Endpoints = e })
	}
	for _, s := range chunk(p.Sources) {
		add(func(c *collect.RulePort) { c.Sources = s })
	}
	return out
}

func chunkKeyPort(k collect.KeyPort) []collect.KeyPort {
	var out []collect.KeyPort
	for _, p := range chunkPort(k.RulePort) {
		c := k
		c.RulePort = p
		out = append(out, c)
	}
	return out
}

func chunk[T any](list []T) (out [][]T) {
	for len(list) > maxAddrs {
		out, list = append(out, list[:maxAddrs]), list[maxAddrs:]
	}
	if len(list) > 0 {
		out = append(out, list)
	}
	return out
}
