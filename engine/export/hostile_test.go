package export

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/kconverge/kconverge/engine/lanes/lanestest"
	"github.com/kconverge/kconverge/engine/timeline"
)

// hostile is a Snapshot with one text in every field that a cluster fills in.
func hostile(evil string) *timeline.Snapshot {
	snap := lanestest.Converging()
	snap.Session.Name, snap.Session.Rules, snap.Session.ControlPlane = evil, evil, evil
	svc := snap.Services[0]
	svc.Namespace, svc.Name, svc.WhyNot = evil, evil, evil
	for i := range svc.Pods {
		svc.Pods[i].Name, svc.Pods[i].Node, svc.Pods[i].Owner = evil, evil, evil
	}
	for _, p := range svc.Paths {
		p.By, p.Endpoint.Pod, p.Endpoint.Node, p.Endpoint.UID, p.ID = evil, evil, evil, evil, p.ID+evil
		p.Before.Probes = []timeline.Probe{{Kind: "readiness", Count: 1, First: snap.First, Last: snap.First, Message: evil}}
		for k := range p.Rules {
			p.Rules[k].Note, p.Rules[k].OfficialWhy = evil, evil
			p.Rules[k].Plane.Node += evil
		}
		p.Slice.Note = evil
	}
	for _, p := range append([]*timeline.Plane{svc.Slices, svc.Endpoints}, svc.Rules.All()...) {
		for i := range p.Members {
			p.Members[i].Endpoint.Pod, p.Members[i].Endpoint.Node = evil, evil
		}
		for i := range p.Changes {
			p.Changes[i].Note = evil
		}
		if p.ID.Node != "" {
			p.ID.Node += evil
		}
	}
	for i := range svc.Marks {
		svc.Marks[i].Text = evil
	}
	svc.Coverage.Blind = append(svc.Coverage.Blind, evil)
	svc.Coverage.BlindWhy = map[string]string{evil: evil}
	svc.Differences = append(svc.Differences, timeline.Difference{
		Plane: timeline.PlaneID{Kind: timeline.PlaneRules, Node: evil}, Kind: "stale", Since: snap.First, Endpoint: timeline.Endpoint{Pod: evil, Node: evil},
	})
	snap.Gaps = append(snap.Gaps, timeline.Gap{Source: "rules/node-1", From: snap.First, To: snap.First.Add(time.Second), Why: evil})
	snap.Nodes = append(snap.Nodes, timeline.Node{Name: evil, Exists: true, Ready: true, Unknown: []string{evil}, UnknownSince: snap.First})
	return snap
}

func TestACellOfTheCSVIsNoFormula(t *testing.T) {
	for _, evil := range []string{"=1+1", "+1", "-1+2", "@SUM(A1)", "\t=1", `"x",=1` + "\n=2"} {
		d := document(t, hostile(evil))
		rows := csvTable(t, d)
		if len(rows) < 10 {
			t.Fatalf("%d rows", len(rows))
		}
		for _, r := range rows {
			for name, v := range r {
				if strings.HasSuffix(name, "_ms") {
					continue // numbers, which may be negative
				}
				if v != "" && strings.ContainsRune("=+-@\t\r", rune(v[0])) {
					t.Fatalf("%s is %q", name, v)
				}
			}
		}
	}
}

// TestNamesMeanNothingToMarkdown: they stand in code, whose fence is longer than any in it.
func TestNamesMeanNothingToMarkdown(t *testing.T) {
	const evil = "x|y`z``` @octocat <img src=x onerror=alert(1)> [a](http://b) \x1b[31m\n# head\n```\n"
	d := document(t, hostile(evil))
	var b bytes.Buffer
	if err := d.Markdown(&b); err != nil {
		t.Fatal(err)
	}
	fence := ""
	for line := range strings.Lines(b.String()) {
		line = strings.TrimRight(line, "\n")
		if strings.ContainsAny(line, "\x1b\r") {
			t.Fatalf("%q", line)
		}
		run := line[:len(line)-len(strings.TrimLeft(line, "`"))]
		switch {
		case fence != "":
			if line == fence {
				fence = ""
			} else if len(run) >= len(fence) {
				t.Fatalf("%q ends a fence of %s", line, fence)
			}
			continue
		case strings.HasSuffix(line, "text") && len(run) >= 3:
			fence = run
			continue
		}
		// Outside, what is left without the code spans is ours.
		bare := codeSpans(line)
		if strings.ContainsAny(bare, "<>[]@`") || strings.Contains(bare, "octocat") {
			t.Errorf("%q leaves %q", line, bare)
		}
		if strings.HasPrefix(line, "| ") && strings.Count(strings.ReplaceAll(line, `\|`, ""), "|") != 10 {
			t.Errorf("a row of the table has other cells: %q", line)
		}
	}
	if fence != "" {
		t.Error("a fence is not closed")
	}
}

// codeSpans takes a line's code spans out, as CommonMark finds them: from a run of
// backticks to the next run of the same length.
func codeSpans(s string) (out string) {
	for {
		i := strings.IndexByte(s, '`')
		if i < 0 {
			return out + s
		}
		n := len(s[i:]) - len(strings.TrimLeft(s[i:], "`"))
		rest := s[i+n:]
		end := -1
		for k := 0; k < len(rest); {
			if rest[k] != '`' {
				k++
				continue
			}
			m := len(rest[k:]) - len(strings.TrimLeft(rest[k:], "`"))
			if m == n {
				end = k
				break
			}
			k += m
		}
		if end < 0 {
			return out + s
		}
		out, s = out+s[:i], rest[end+n:]
	}
}
