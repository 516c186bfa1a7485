package nodelog

import (
	"context"
	"os"
	"syscall"
	"testing"
)

func write(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

func add(t *testing.T, path string, b []byte) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, err = f.Write(b)
		f.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
}

func rename(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}

func TestAPipeIsFollowedUntilItsWriterEnds(t *testing.T) {
	path := t.TempDir() + "/pipe"
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	v := &viewers{t: t, by: map[string]*viewer{}}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- NewFile(FileOptions{Node: "node-1", Path: path, ReadClock: noClock}).Run(ctx, v) }()
	w, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	s := &script{node: "node-1", instance: "a"}
	for _, l := range append(s.hello(), s.change()) {
		if _, err := w.Write(l); err != nil {
			t.Fatal(err)
		}
	}
	v.until("the change", func() bool { return s.has(v.at("node-1")) })
	w.Close()
	v.until("the end is a gap", func() bool { return len(v.at("node-1").open()) == 1 })
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestEveryEndOfAPipesWritersIsTold(t *testing.T) {
	path := t.TempDir() + "/pipe"
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	v := &viewers{t: t, by: map[string]*viewer{}}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- NewFile(FileOptions{Node: "node-1", Path: path, ReadClock: noClock}).Run(ctx, v) }()
	for _, instance := range []string{"a", "b", "c"} {
		w, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		s := &script{node: "node-1", instance: instance}
		for _, l := range append(s.hello(), s.change()) {
			if _, err := w.Write(l); err != nil {
				t.Fatal(err)
			}
		}
		v.until("the change of "+instance, func() bool { return s.has(v.at("node-1")) && len(v.at("node-1").open()) == 0 })
		w.Close()
		v.until("the end of "+instance+" is a gap", func() bool { return len(v.at("node-1").open()) == 1 })
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
