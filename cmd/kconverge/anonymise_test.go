package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kconverge/kconverge/engine/report"
)

// TestALabRunCanBeSentWithoutItsNames: written anew, and recorded that way at once.
func TestALabRunCanBeSentWithoutItsNames(t *testing.T) {
	kubectl(t)
	h := newHome(t)
	whole, sent, live := filepath.Join(h.dir, "whole"), filepath.Join(h.dir, "sent"), filepath.Join(h.dir, "live")
	if code, _, stderr := h.run(t, nil, "lab", "--headless", "--nodes", "2", "--record", whole, "--run", threeReplicas); code != exitOK {
		t.Fatalf("exit code %d\n%s", code, stderr)
	}
	if code, out, stderr := h.run(t, nil, "anonymise", whole, "-o", sent); code != exitOK || !strings.Contains(out, "no name") {
		t.Fatalf("%d %s%s", code, out, stderr)
	}
	if code, _, stderr := h.run(t, nil, "lab", "--headless", "--nodes", "2", "--record", live, "--anonymise", "--run", threeReplicas); code != exitOK {
		t.Fatalf("exit code %d\n%s", code, stderr)
	}
	read := func(path string) (doc report.Report) {
		code, out, stderr := h.run(t, nil, "replay", path, "--headless", "--output", "json")
		if err := json.Unmarshal([]byte(out), &doc); err != nil || code != exitOK {
			t.Fatalf("%s: %d %v %s", path, code, err, stderr)
		}
		if strings.HasSuffix(path, "whole") {
			return doc
		}
		for _, name := range []string{`"web"`, "web-", "node-1", "node-2"} {
			if strings.Contains(out, name) {
				t.Errorf("%s: %s is left in\n%s", filepath.Base(path), name, out)
			}
		}
		return doc
	}
	was, now := read(whole), read(sent)
	read(live)
	if len(was.Services) != len(now.Services) || !was.AsOf.Equal(now.AsOf) {
		t.Fatalf("%d Services as of %s became %d as of %s", len(was.Services), was.AsOf, len(now.Services), now.AsOf)
	}
	paths := func(r report.Report) (n int, ms float64) {
		for _, s := range r.Services {
			for _, p := range s.Paths {
				n++
				if p.EndMS != nil {
					ms += *p.EndMS
				}
			}
		}
		return n, ms
	}
	n, ms := paths(was)
	if m, sum := paths(now); n < 3 || n != m || ms-sum > 1e-6 || sum-ms > 1e-6 {
		t.Errorf("%d paths of %g ms became %d of %g ms", n, ms, m, sum)
	}
	if code, _, stderr := h.run(t, nil, "anonymise", whole, "-o", sent); code != exitNot || !strings.Contains(stderr, "exists already") {
		t.Errorf("a file that exists: %d %s", code, stderr)
	}
	if code, _, stderr := h.run(t, nil, "replay", whole, "--headless", "--anonymise"); code != exitUsage || !strings.Contains(stderr, "--record FILE") {
		t.Errorf("--anonymise without a recording: %d %s", code, stderr)
	}
}
