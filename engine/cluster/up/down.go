package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	// endLimit is far beyond the seconds that an end takes.
	endLimit = 2 * time.Minute
	// lookEvery is how often it is looked whether it has ended.
	lookEvery = 20 * time.Millisecond
)

// vanish is how long what was ended may take to be gone.
var vanish = 5 * time.Second

// down ends the cluster that runs, and returns when its processes, namespaces and
// files are gone.
func down(path string, out io.Writer) error {
	f, err := open(path, 0)
	if errors.Is(err, os.ErrNotExist) {
		fmt.Fprintln(out, "No cluster runs.")
		return nil
	} else if err != nil {
		return err
	}
	defer f.Close()
	free, err := tryLock(f)
	if err != nil {
		return err
	}
	r, readErr := read(f)
	if free {
		fmt.Fprintln(out, "No cluster runs.")
		if readErr != nil || !named(f, path) {
			return nil // nor was one killed
		}
		left, err := r.clean()
		if left != "" && err == nil {
			fmt.Fprintln(out, "One that was killed had left its folder; it is removed:", left)
		}
		return errors.Join(err, os.Remove(path))
	}
	if readErr != nil {
		return fmt.Errorf("a cluster runs, and %s does not tell which (%w): wait a second, then try again", path, readErr)
	}
	// While the lock is held the process is that one and no other of its number.
	parts, spaces := family(r.PID), namespaces(r.PID)
	fmt.Fprintf(out, "Ending the cluster of process %d and its %d programs …\n", r.PID, len(parts)-1)
	if err := syscall.Kill(r.PID, syscall.SIGTERM); err != nil {
		return fmt.Errorf("end process %d: %w", r.PID, err)
	}
	for deadline := time.Now().Add(endLimit); ; time.Sleep(lookEvery) {
		if free, err = tryLock(f); err != nil {
			return err
		} else if free {
			break
		} else if time.Now().After(deadline) {
			return fmt.Errorf("process %d has not ended in %s: kill it (kill -9 %d), and the kernel ends its programs; then make cluster-down again, for its files", r.PID, endLimit, r.PID)
		}
	}
	if left := remains(r, parts, spaces); len(left) > 0 {
		return fmt.Errorf("the cluster has ended, and this is left: %s", strings.Join(left, ", "))
	}
	fmt.Fprintln(out, "It has ended, and nothing is left.")
	return nil
}

// remains lists what is left of a cluster that has ended: its folder, its processes
// (by number and time of start), and whoever is still in one of its namespaces. A
// process that has ended may take a moment to vanish.
func remains(r record, parts map[int]string, spaces map[string]bool) (left []string) {
	for deadline := time.Now().Add(vanish); ; time.Sleep(lookEvery) {
		left = nil
		if _, err := os.Lstat(r.Dir); err == nil {
			left = append(left, r.Dir)
		}
		for _, pid := range slices.Sorted(maps.Keys(parts)) {
			if start, _, ok := stat(pid); ok && start == parts[pid] {
				left = append(left, fmt.Sprintf("process %d", pid))
			}
		}
		all, _ := filepath.Glob("/proc/[0-9]*/ns/net")
		for _, file := range all {
			if ns, err := os.Readlink(file); err == nil && spaces[ns] {
				left = append(left, "process "+strings.Split(file, "/")[2]+" in namespace "+ns)
			}
		}
		if len(left) == 0 || time.Now().After(deadline) {
			return left
		}
	}
}

// family is a process and all that descend from it, each with the time of its start.
func family(pid int) map[int]string {
	parents, starts := map[int]int{}, map[int]string{}
	all, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range all {
		n, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			continue
		}
		if start, parent, ok := stat(n); ok {
			parents[n], starts[n] = parent, start
		}
	}
	out := map[int]string{}
	for n := range starts {
		for at, steps := n, 0; at > 0 && steps <= len(parents); at, steps = parents[at], steps+1 {
			if at == pid {
				out[n] = starts[n]
				break
			}
		}
	}
	return out
}

// stat reads a process's time of start, in ticks, and its parent (proc_pid_stat(5):
// fields 22 and 4; the name before them may hold anything). A process that has ended
// and was not waited for is none.
func stat(pid int) (start string, parent int, ok bool) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", 0, false
	}
	f := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
	if len(f) < 20 || f[0] == "Z" || f[0] == "X" {
		return "", 0, false
	}
	parent, err = strconv.Atoi(f[1])
	return f[19], parent, err == nil
}

// namespaces are the network namespaces that a process holds, but for its own.
func namespaces(pid int) map[string]bool {
	out := map[string]bool{}
	fds, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	for _, fd := range fds {
		if to, err := os.Readlink(fd); err == nil && strings.HasPrefix(to, "net:[") {
			out[to] = true
		}
	}
	own, _ := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", pid))
	delete(out, own)
	return out
}
