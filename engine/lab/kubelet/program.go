package kubelet

import (
	"math"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// forever is the running time of a program that does not end by itself.
const forever = time.Duration(math.MaxInt64)

// program is what a container does. No image is really run: a container is a
// server that listens until it is told to stop, unless its command line is one
// that can be followed here.
type program struct {
	serves bool          // it listens
	after  time.Duration // it ends by itself so long after its start, or forever
	code   int32         // with this exit code
}

// server is what every command that is not understood stands for.
var server = program{serves: true, after: forever}

// programOf reads the command line of a container. Understood are sleep, exit,
// true, false, echo, date and ":", one of them or several joined by ";", "&&" or
// new lines, by themselves or as the script of a shell; anything else is a server.
func programOf(command, args []string) program {
	p, ok := script(append(append([]string{}, command...), args...))
	if !ok {
		return server
	}
	return p
}

func containerProgram(c *corev1.Container) program { return programOf(c.Command, c.Args) }

// initProgram is a server's counterpart for init containers: what cannot be
// followed succeeds at once, since otherwise its pod would never start.
func initProgram(c *corev1.Container) program {
	if p, ok := script(append(append([]string{}, c.Command...), c.Args...)); ok {
		return p
	}
	return program{}
}

func script(argv []string) (program, bool) {
	if len(argv) == 0 {
		return program{}, false
	}
	if len(argv) >= 3 && isShell(argv[0]) && (argv[1] == "-c" || argv[1] == "-ec" || argv[1] == "-xc") {
		return steps(argv[2])
	}
	return step(argv)
}

func isShell(name string) bool {
	switch name[strings.LastIndex(name, "/")+1:] {
	case "sh", "bash", "ash", "dash":
		return true
	}
	return false
}

// steps follows a shell script of simple commands.
func steps(text string) (out program, ok bool) {
	if strings.ContainsAny(text, "|`") || strings.Contains(text, "$(") {
		return out, false
	}
	for line := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ';' || r == '\n' }) {
		for i, cmd := range strings.Split(line, "&&") {
			words := strings.Fields(cmd)
			if len(words) > 0 && words[0] == "exec" {
				words = words[1:]
			}
			switch {
			case len(words) == 0 && i == 0 && strings.TrimSpace(line) == "":
				continue
			case len(words) == 0 || strings.HasSuffix(cmd, "&"):
				return out, false
			}
			p, understood := step(words)
			if !understood {
				return out, false
			}
			if p.after == forever {
				return program{after: forever}, true
			}
			out.after, out.code, ok = out.after+p.after, p.code, true
			if words[0] == "exit" {
				return out, true
			}
			if p.code != 0 {
				break // what && joins is left out
			}
		}
	}
	return out, ok
}

// step follows one command.
func step(words []string) (program, bool) {
	switch words[0][strings.LastIndex(words[0], "/")+1:] {
	case "true", ":", "echo", "date":
		return program{}, true
	case "false":
		return program{code: 1}, true
	case "exit":
		if len(words) == 1 {
			return program{}, true
		}
		n, err := strconv.ParseUint(words[1], 10, 8)
		return program{code: int32(n)}, err == nil && len(words) == 2
	case "sleep":
		if len(words) != 2 {
			return program{}, false
		}
		d, ok := sleepTime(words[1])
		return program{after: d}, ok
	}
	return program{}, false
}

// sleepTime reads the argument of sleep(1).
func sleepTime(s string) (time.Duration, bool) {
	if s == "infinity" || s == "inf" {
		return forever, true
	}
	unit := time.Second
	for suffix, u := range map[string]time.Duration{"s": time.Second, "m": time.Minute, "h": time.Hour, "d": 24 * time.Hour} {
		if n, ok := strings.CutSuffix(s, suffix); ok {
			s, unit = n, u
			break
		}
	}
	n, err := strconv.ParseFloat(s, 64)
	if err != nil || !(n >= 0) {
		return 0, false
	}
	if d := n * float64(unit); d < float64(forever/2) {
		return time.Duration(d), true
	}
	return forever, true
}
