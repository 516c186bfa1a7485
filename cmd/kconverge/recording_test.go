package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/collect/recording"
)

// TestAKilledProgramsRecordingReplaysUpToItsEnd: what it holds is what the program
// saw, but for the last second, and comes to the same report as that.
func TestAKilledProgramsRecordingReplaysUpToItsEnd(t *testing.T) {
	kubectl(t)
	rnd := rand.New(rand.NewPCG(1, uint64(os.Getpid())))
	for round := range 3 {
		h := newHome(t)
		file := filepath.Join(h.dir, "cut")
		lab := h.lab(t, "--nodes", "2", "--output", "events", "--record", file)
		h.kubectl(t, "create", "deployment", "web", "--image=nginx", "--replicas=3")
		h.kubectl(t, "expose", "deployment", "web", "--port=80")
		h.kubectl(t, "rollout", "status", "deployment/web")
		h.kubectl(t, "scale", "deployment/web", "--replicas=6")
		<-time.After(time.Duration(rnd.IntN(2000)) * time.Millisecond) // a random moment
		// The guard itself only passes on that it ends.
		if err := syscall.Kill(h.below(t, lab.cmd.Process.Pid), syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		<-lab.done
		eventually(t, "the lab is gone", func() bool { return len(h.descendants(t)) == 0 })

		lines := strings.SplitAfter(lab.stdout.String(), "\n")
		lines = lines[:len(lines)-1] // the last one may be cut off
		got := recorded(t, file)
		if len(got) < 50 || len(got) > len(lines) {
			t.Fatalf("round %d: %d events are recorded, %d were seen", round, len(got), len(lines))
		}
		event := func(i int) collect.Event {
			e, err := collect.Unmarshal([]byte(lines[i]))
			if err != nil {
				t.Fatal(err)
			}
			return e
		}
		if len(got) < len(lines) {
			// A second, and what a busy machine takes to wake up.
			if lost := event(len(lines) - 1).At.Sub(event(len(got)).At); lost > 3*time.Second {
				t.Errorf("round %d: the last %s are lost", round, lost)
			}
		}
		seen := filepath.Join(h.dir, "seen.jsonl")
		if err := os.WriteFile(seen, []byte(strings.Join(lines[:len(got)], "")), 0o600); err != nil {
			t.Fatal(err)
		}
		_, want, _ := h.run(t, nil, "replay", seen, "--headless", "--output", "json")
		_, report, stderr := h.run(t, nil, "replay", file, "--headless", "--output", "json")
		if report != want || report == "" {
			t.Errorf("round %d: the report differs from that of what was seen:\n%s", round, diff(want, report))
		}
		if !strings.Contains(stderr, "was not closed") {
			t.Errorf("round %d: nobody says that it was cut: %q", round, stderr)
		}
	}
}

func TestTheLastSessionIsKeptAndInfoTellsWhatARecordingHolds(t *testing.T) {
	kubectl(t)
	h := newHome(t)
	if code, _, stderr := h.run(t, nil, "replay", "--last", "--headless"); code != exitUnreachable || !strings.Contains(stderr, "no session was recorded") {
		t.Errorf("without any session: %d %s", code, stderr)
	}
	file := filepath.Join(h.dir, "whole")
	code, live, stderr := h.run(t, nil, "lab", "--headless", "--nodes", "2", "--output", "json", "--record", file, "--run", threeReplicas)
	if code != exitOK {
		t.Fatalf("exit code %d\n%s", code, stderr)
	}
	code, last, stderr := h.run(t, nil, "replay", "--last", "--headless", "--output", "json")
	if code != exitOK || last != live {
		t.Errorf("the last session: %d %s\n%s", code, stderr, diff(live, last))
	}
	if left := h.left(t); len(left) > 0 {
		t.Errorf("left behind: %s", left)
	}
	code, info, stderr := h.run(t, nil, "info", file)
	for _, want := range []string{"format     kconverge.recording/v1", "nodes      2: node-1, node-2", "state      whole", fmt.Sprintf("events     %d of ", len(recorded(t, file)))} {
		if code != exitOK || !strings.Contains(info, want) {
			t.Errorf("no %q in\n%s%s", want, info, stderr)
		}
	}
	// Where somebody does not want it, nothing is kept.
	if err := os.MkdirAll(filepath.Join(h.dir, "home/.config/kconverge"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(h.dir, "home/.config/kconverge/config.yaml"), []byte("keepLast: false\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	rings := func() int {
		files, err := filepath.Glob(filepath.Join(h.dir, "state/kconverge/ring-*"))
		if err != nil {
			t.Fatal(err)
		}
		return len(files)
	}
	before := rings()
	if _, _, stderr := h.run(t, nil, "lab", "--headless", "--nodes", "1", "--for", "1s", "--output", "none"); rings() != before || before == 0 {
		t.Errorf("%d files before, %d after: %s", before, rings(), stderr)
	}
}

// TestTheEndOfARecordingIsToldByItsLastCheckpoint: and is what playing every event comes
// to. Where the checkpoint may be another program's, or something is damaged, every event
// is played.
func TestTheEndOfARecordingIsToldByItsLastCheckpoint(t *testing.T) {
	h := newHome(t)
	o := recordingOptions()
	o.CheckpointEvery = 10
	path := recordScenario(t, o)
	open := func(path string) *recording.File {
		f, err := recording.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	f := open(path)
	if _, ok := ending(f); !ok {
		t.Fatal("the last checkpoint is not made use of")
	}
	for _, output := range []string{"json", "text"} {
		code, want, stderr := h.run(t, nil, "replay", path, "--headless", "-o", output, "--from-start")
		if again, got, said := h.run(t, nil, "replay", path, "--headless", "-o", output); again != code || got != want || said != stderr || want == "" {
			t.Errorf("%s: %d %s\n%s\nfrom the start: %d %s\n%s", output, again, said, got, code, stderr, want)
		}
	}
	for _, unsure := range []func(*recording.File){
		func(f *recording.File) { f.Tool = "another" }, func(f *recording.File) { f.Tool = "" },
		func(f *recording.File) { f.Cut = true }, func(f *recording.File) { f.Indexed = false },
	} {
		g := open(path)
		unsure(g)
		if _, ok := ending(g); ok {
			t.Errorf("of one that is indexed: %v, cut: %v, of the program %q", g.Indexed, g.Cut, g.Tool)
		}
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	first := f.Frames[0]
	b[first.Offset+first.Size/2] ^= 0xff
	damaged := filepath.Join(t.TempDir(), "damaged.kcrec")
	if err := os.WriteFile(damaged, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, ok := ending(open(damaged)); ok {
		t.Error("of one with damage before its last checkpoint")
	}
	if code, _, stderr := h.run(t, nil, "replay", damaged, "--headless", "-o", "none"); code != exitCannotTell {
		t.Errorf("one that is damaged: %d %s", code, stderr)
	}
}
