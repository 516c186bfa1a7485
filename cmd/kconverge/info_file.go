package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/collect/recording"
	"github.com/kconverge/kconverge/engine/lanes"
)

// sayCut says of a recording that was not closed that there may have been more.
func sayCut(w io.Writer, f *recording.File, path string) {
	if f.Cut {
		fmt.Fprintln(w, "kconverge: "+collect.Plain(path)+" was not closed: its end may be missing")
	}
}

// recordingInfo writes what a recording holds. It reads all of it.
func recordingInfo(w io.Writer, path string) error {
	f, err := recording.Open(path)
	if err != nil {
		return exitWith(exitUnreachable, err)
	}
	defer f.Close()
	var first, last time.Time
	kinds, nodes, sources := map[string]int{}, map[string]bool{}, map[collect.SourceID]bool{}
	events := 0
	r := f.Read(0)
	for {
		e, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return exitWith(exitUnreachable, err)
		}
		events++
		kinds[e.Payload.Type()]++
		sources[e.Source] = true
		if first.IsZero() {
			first = e.At
		}
		if e.At.After(last) {
			last = e.At
		}
		if e.Object.Kind == "Node" {
			nodes[e.Object.Name] = true
		}
	}
	s := f.Session
	format := s.Format
	if format == "" {
		format = "JSON lines, from before formats had names"
	}
	plain := collect.Plain
	fmt.Fprintf(w, "recording  %s, %d bytes\nformat     %s\n", plain(path), f.Size, plain(format))
	fmt.Fprintf(w, "of         %s %s", plain(s.Kind), plain(s.Name))
	for _, x := range []struct{ what, text string }{{"Kubernetes", s.Version}, {"kconverge", s.Tool}} {
		if x.text != "" {
			fmt.Fprintf(w, ", %s %s", x.what, plain(x.text))
		}
	}
	namespaces := "all namespaces"
	if len(s.Namespaces) > 0 {
		namespaces = "namespace " + plain(strings.Join(s.Namespaces, ", "))
	}
	fmt.Fprintf(w, ", %s\ntime       %s to %s, %s\n", namespaces, first.Format(time.RFC3339), last.Format(time.RFC3339), lanes.SpanOf(last.Sub(first).Round(time.Second)))
	names := slices.Sorted(maps.Keys(nodes))
	if len(names) > 6 {
		names = append(names[:5], fmt.Sprintf("and %d more", len(names)-5))
	}
	fmt.Fprintf(w, "nodes      %d: %s\n", len(nodes), plain(strings.Join(names, ", ")))
	if s.Rules != "" {
		fmt.Fprintf(w, "rules      %s\n", plain(s.Rules))
	}
	var list []string
	for _, k := range slices.Sorted(maps.Keys(kinds)) {
		list = append(list, fmt.Sprintf("%s %d", k, kinds[k]))
	}
	fmt.Fprintf(w, "events     %d of %s (%s)\n", events, lanes.Plural(len(sources), "source"), strings.Join(list, ", "))
	switch {
	case r.Damaged > 0:
		fmt.Fprintf(w, "state      %s cannot be read; what was in them is drawn as a gap\n", lanes.Plural(r.Damaged, "part"))
	case f.Cut:
		fmt.Fprintf(w, "state      not closed: it is still being written, its program was killed, or it was cut; its end may be missing\n")
	case f.Indexed:
		fmt.Fprintf(w, "state      whole\n")
	}
	return nil
}
