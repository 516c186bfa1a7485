package anonymise

import (
	_ "embed"
	"net/netip"
	"regexp"
	"strings"

	"github.com/kconverge/kconverge/collect"
)

// wordList are the words of kconverge's own texts, and of errors of Go and of the API
// server. They say what went wrong, and not whose it is.
//
//go:embed words.txt
var wordList string

var textWords = set(wordList)

var (
	between   = " \t\n\r,;()[]{}<>\"'`=/|→"
	shortFlag = regexp.MustCompile(`^-[A-Za-z]$`)
	// quantity is a count, a duration or a time of day.
	quantity = regexp.MustCompile(`^[+-]?([0-9]{1,7}(\.[0-9]{1,9})?(ns|µs|ms|s|m|h|%|x)?|[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?)$`)
)

// text replaces what is not known of a text, word by word. It is the same text
// afterwards where it was the same before.
func (a *Anonymiser) text(s string) string {
	if s == "" || knownWords[s] {
		return s
	}
	var b strings.Builder
	for s != "" {
		i := strings.IndexAny(s, between)
		if i < 0 {
			i = len(s)
		}
		b.WriteString(a.token(s[:i]))
		s = s[i:]
		n := len(s) - len(strings.TrimLeft(s, between))
		b.WriteString(s[:n])
		s = s[n:]
	}
	return b.String()
}

// token replaces one word of a text.
func (a *Anonymiser) token(s string) string {
	if a.names.knows(s) {
		return a.names.of(word, s)
	}
	end := strings.TrimRight(s, ".:!?")
	if tail := s[len(end):]; tail != "" && end != "" {
		if _, err := netip.ParseAddr(s); err != nil { // "fd00::" is one
			return a.token(end) + tail
		}
	}
	if x, err := netip.ParseAddr(s); err == nil {
		return a.addr(x).String()
	}
	if x, err := netip.ParseAddrPort(s); err == nil {
		return netip.AddrPortFrom(a.addr(x.Addr()), x.Port()).String()
	}
	low := strings.ToLower(s)
	switch {
	case s == "" || strings.Trim(s, ".:!?*+-–—…") == "" || quantity.MatchString(s):
		return s
	case textWords[low] || knownWords[s]:
		return s
	}
	if shortFlag.MatchString(s) {
		return s
	}
	if flag, ok := strings.CutPrefix(low, "--"); ok && textWords[flag] && !a.names.knows(flag) {
		return s
	}
	if host, p, ok := strings.Cut(s, ":"); ok && host != "" && p != "" { // a port, or another word
		return a.token(host) + ":" + a.token(p)
	}
	return a.names.of(word, s)
}

// probeWords are what the model reads of the kubelet's messages about probes.
var probeWords = regexp.MustCompile(`^(Readiness|Liveness|Startup) probe (failed|errored)\b|\bfailed (readiness|liveness|startup) probe\b`)

// pulled is what the model reads of the kubelet's message about an image: how long.
var pulled = regexp.MustCompile(`^Successfully pulled image (.*)( in [0-9.a-zµ]+(?: \([0-9.a-zµ]+ including waiting\))?)`)

// message leaves of a message what kind of probe it is about, or how long a pull took. What a probe was answered, or
// what an image or a volume is called, goes.
func (a *Anonymiser) message(k *collect.KubeEvent) string {
	if k.Message == "" {
		return ""
	}
	if m := pulled.FindStringSubmatch(k.Message); m != nil && k.Reason == "Pulled" {
		return "Successfully pulled image " + a.names.of(word, m[1]) + m[2]
	}
	switch said := probeWords.FindString(k.Message); {
	case said == "":
		return a.names.of(word, k.Message)
	case strings.HasPrefix(said, "failed"):
		return "Container " + a.names.of(word, k.Message) + " " + said
	default:
		rest := strings.TrimPrefix(strings.TrimPrefix(k.Message, said), ": ")
		if rest == "" {
			return said
		}
		return said + ": " + a.names.of(word, rest)
	}
}
