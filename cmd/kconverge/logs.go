package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"

	"google.golang.org/grpc/grpclog"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"
)

// captureLogs sends what libraries log (klog, grpc, the standard logger, the
// error handlers of apimachinery) to a file, so that nothing but the program
// itself writes to the terminal. The file is started anew each time, and shared
// with programs that already write to it; w is for libraries that take a writer.
// Where no file can be written that is said, and what is logged is lost.
func captureLogs() (w io.Writer, done func(), err error) {
	f, err := openLog()
	if err != nil {
		return nil, nil, err
	}
	klog.LogToStderr(false)
	klog.SetOutput(f)
	// Errors would go to standard error as well.
	flags := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(flags)
	if err := flags.Set("stderrthreshold", "FATAL"); err != nil {
		return nil, nil, fmt.Errorf("log file: %w", err)
	}
	log.SetOutput(f)
	grpclog.SetLoggerV2(grpclog.NewLoggerV2(io.Discard, f, f))
	utilruntime.ErrorHandlers = []utilruntime.ErrorHandler{
		func(_ context.Context, err error, msg string, keys ...any) {
			log.Println(append([]any{msg, err}, keys...)...)
		},
	}
	return f, func() { klog.Flush(); _ = f.Close() }, nil
}

// openLog opens the log file in the state directory or, where that cannot be
// written, in a folder of the user's own in the temporary directory.
func openLog() (*os.File, error) {
	const name = "kconverge.log"
	open := func(dir string) (*os.File, error) {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
		return os.OpenFile(filepath.Join(dir, name), os.O_WRONLY|os.O_CREATE|os.O_TRUNC|os.O_APPEND, 0o600)
	}
	f, why := open(stateDir())
	if why == nil {
		return f, nil
	}
	dir := tempDir()
	if err := os.MkdirAll(dir, 0o700); err == nil && private(dir) {
		if f, err := open(dir); err == nil {
			fmt.Fprintf(os.Stderr, "kconverge: log file: %v; it is %s instead (set XDG_STATE_HOME to a folder that can be written)\n", why, f.Name())
			return f, nil
		}
	}
	fmt.Fprintf(os.Stderr, "kconverge: log file: %v; nothing is logged (set XDG_STATE_HOME to a folder that can be written)\n", why)
	return os.OpenFile(os.DevNull, os.O_WRONLY, 0)
}

// tempDir is the user's folder in the temporary directory, where anybody may have
// made one of that name first.
func tempDir() string { return filepath.Join(os.TempDir(), fmt.Sprintf("kconverge-%d", userID)) }

// stateDir is where logs go: XDG_STATE_HOME, else ~/.local/state.
func stateDir() string {
	if d := os.Getenv("XDG_STATE_HOME"); d != "" {
		return filepath.Join(d, "kconverge")
	}
	if home, err := os.UserHomeDir(); err == nil {
		return filepath.Join(home, ".local", "state", "kconverge")
	}
	return tempDir()
}

// runtimeDir is where the lab's kubeconfig goes: XDG_RUNTIME_DIR, the user's
// folder under /run, else the one in the temporary directory.
func runtimeDir() (dir string, shared bool) {
	if d := os.Getenv("XDG_RUNTIME_DIR"); d != "" {
		return filepath.Join(d, "kconverge"), false
	}
	if d := fmt.Sprintf("/run/user/%d", userID); isDir(d) {
		return filepath.Join(d, "kconverge"), false
	}
	return tempDir(), true
}

func isDir(path string) bool {
	fi, err := os.Stat(path)
	return err == nil && fi.IsDir()
}
