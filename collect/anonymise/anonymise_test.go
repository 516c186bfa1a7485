package anonymise_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/collect/anonymise"
)

// mark stands in everything that must not be left.
const mark = "qzsecretqz"

var timelineStart = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// filler fills a payload with strings that nobody may read later, and with addresses.
type filler struct {
	rnd   *rand.Rand
	n     int
	addrs map[netip.Addr]bool
}

func (f *filler) text() string {
	f.n++
	s := mark + fmt.Sprint(f.n)
	// In a sentence, a word in front or behind, or alone.
	switch f.rnd.IntN(8) {
	case 0:
		return "dial tcp " + f.addr().String() + ":443: lookup " + s + ".example.com: refused"
	case 1:
		return "kubectl scale deploy/" + s + " --replicas=3 --namespace=" + s + "x"
	case 2:
		return "Readiness probe failed: Get \"http://[" + f.addr().String() + "]:80/" + s + "\""
	case 3:
		return s + ":8080"
	case 4:
		return "v1.2.3-" + s
	case 5:
		return "kconverge.recording/v" + s
	case 6:
		return "rules/" + s
	}
	return s
}

func (f *filler) addr() netip.Addr {
	var a netip.Addr
	if f.rnd.IntN(2) == 0 {
		a = netip.AddrFrom4([4]byte{10, byte(f.rnd.IntN(256)), byte(f.rnd.IntN(256)), byte(f.rnd.IntN(256))})
	} else {
		b := [16]byte{0xfd, 0x11}
		for i := 2; i < 16; i++ {
			b[i] = byte(f.rnd.IntN(256))
		}
		a = netip.AddrFrom16(b)
	}
	f.addrs[a] = true
	return a
}

func (f *filler) fill(v reflect.Value) {
	switch x := v.Addr().Interface().(type) {
	case *netip.Addr:
		*x = f.addr()
		return
	case *netip.AddrPort:
		*x = netip.AddrPortFrom(f.addr(), 80)
		return
	case *netip.Prefix:
		*x = netip.PrefixFrom(f.addr(), 30).Masked()
		delete(f.addrs, x.Addr())
		return
	case *time.Time:
		*x = time.Unix(f.rnd.Int64N(1e9), 0).UTC()
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(f.text())
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		f.fill(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		f.fill(v.Index(0))
		f.fill(v.Index(1))
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range 2 {
			v.SetMapIndex(reflect.ValueOf(f.text()), reflect.ValueOf(f.text()))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			f.fill(v.Field(i))
		}
	}
}

var address = regexp.MustCompile(`[0-9a-f]*[.:][0-9a-f.:]+`)

// addressesIn are those that a text names, and what is left of their ports.
func addressesIn(s string) map[netip.Addr]bool {
	out := map[netip.Addr]bool{}
	for _, x := range address.FindAllString(s, -1) {
		for _, y := range []string{x, strings.Trim(x, ":"), strings.TrimRight(x, "0123456789")} {
			if a, err := netip.ParseAddr(strings.TrimRight(y, ":")); err == nil {
				out[a] = true
			}
			if a, err := netip.ParseAddr(y); err == nil {
				out[a] = true
			}
		}
	}
	return out
}

// TestNothingThatIsNotKnownIsLeft fills every string of every payload, and of the event
// around it, with what nobody may read.
func TestNothingThatIsNotKnownIsLeft(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := &filler{rnd: rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1)), addrs: map[netip.Addr]bool{}}
		var events []collect.Event
		for _, p := range collect.Payloads() {
			f.fill(reflect.ValueOf(p).Elem())
			events = append(events, collect.Event{Seq: uint64(len(events)), Source: collect.SourceID(f.text()), Op: collect.Op(f.text()), UID: f.text(),
				Object: collect.ObjectKey{Kind: f.text(), Namespace: f.text(), Name: f.text()}, Payload: p})
		}
		for _, learn := range []bool{false, true} {
			var before, out bytes.Buffer
			a := anonymise.New()
			was, w := collect.NewWriter(&before), collect.NewWriter(&out)
			for _, e := range events {
				if err := was.Write(e); err != nil {
					t.Fatal(err)
				}
				if learn {
					a.Learn(e)
				}
			}
			if learn {
				a.Learnt()
			}
			for _, e := range events {
				if err := w.Write(a.Event(e)); err != nil {
					t.Fatal(err)
				}
			}
			if i := bytes.Index(out.Bytes(), []byte("qzsecret")); i >= 0 {
				t.Fatalf("left: …%s…", out.Bytes()[max(0, i-200):min(out.Len(), i+100)])
			}
			if n := strings.Count(before.String(), mark); n < 200 {
				t.Fatalf("only %d were there before", n)
			}
			for x := range addressesIn(out.String()) {
				// Who has not learnt may by chance replace one by what another was.
				if f.addrs[x] && (learn || !a.Stands(x)) {
					t.Fatalf("%s is left", x)
				}
			}
			if !slices.ContainsFunc(slices.Collect(keys(addressesIn(before.String()))), func(x netip.Addr) bool { return f.addrs[x] }) {
				t.Fatal("no address was there before")
			}
			// What was given stays as it was.
			var again bytes.Buffer
			w = collect.NewWriter(&again)
			for _, e := range events {
				if err := w.Write(e); err != nil {
					t.Fatal(err)
				}
			}
			if !bytes.Equal(before.Bytes(), again.Bytes()) {
				t.Fatal("the events that were given have changed")
			}
		}
	})
}

func keys[K comparable, V any](m map[K]V) func(func(K) bool) {
	return func(yield func(K) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// TestTheSameIsReplacedByTheSame and different by different, wherever they stand.
func TestTheSameIsReplacedByTheSame(t *testing.T) {
	for _, learn := range []bool{false, true} {
		ip := netip.MustParseAddr("10.1.2.3")
		events := []collect.Event{
			{Source: collect.RulesSource("worker.corp"), Payload: &collect.Rules{Node: "worker.corp", Process: "kube-proxy", Unknown: []string{"chain service-X: 10.1.2.3:80"},
				Ports: []collect.RulePort{{RulePortKey: collect.RulePortKey{Namespace: "pay", Service: "till", Protocol: collect.TCP, Family: collect.IPv4, Policy: collect.PolicyCluster}, Endpoints: []netip.AddrPort{netip.AddrPortFrom(ip, 80)}}}}},
			{Source: collect.SourceNodes, Object: collect.ObjectKey{Kind: "Node", Name: "worker.corp"}, Payload: &collect.Node{Labels: map[string]string{"kubernetes.io/hostname": "worker.corp", "corp.com/rack": "r1", "node-role.kubernetes.io/worker": ""}, Ready: &collect.Condition{Reason: "KubeletReady"}}},
			{Source: collect.SourceServices, Object: collect.ObjectKey{Kind: "Service", Namespace: "pay", Name: "till"}, Payload: &collect.Service{Selector: map[string]string{"app": "till", "team": "money"}}},
			{Source: collect.SourcePods, Object: collect.ObjectKey{Kind: "Pod", Namespace: "pay", Name: "till-1"}, UID: "u1", Payload: &collect.Pod{IPs: []netip.Addr{ip}, Node: "worker.corp", Labels: map[string]string{"app": "till", "team": "money", "other": "x"}}},
			{Source: collect.SourceUser, Payload: &collect.Action{Namespace: "pay", Service: "till", Text: "kubectl -n pay scale deploy/till --replicas=7"}},
			{Source: collect.SourceKubeEvents, Payload: &collect.KubeEvent{Regarding: collect.ObjectKey{Kind: "Pod", Namespace: "pay", Name: "till-1"}, UID: "u1", Reason: "Unhealthy", Message: "Readiness probe failed: the password is 1234"}},
		}
		a := anonymise.New()
		if learn {
			for _, e := range events {
				a.Learn(e)
			}
			a.Learnt()
		}
		var out []collect.Event
		for _, e := range events {
			out = append(out, a.Event(e))
		}
		rules, node, svc, pod := out[0].Payload.(*collect.Rules), out[1].Payload.(*collect.Node), out[2].Payload.(*collect.Service), out[3].Payload.(*collect.Pod)
		action, event := out[4].Payload.(*collect.Action), out[5].Payload.(*collect.KubeEvent)
		name := out[1].Object.Name
		for what, ok := range map[string]bool{
			"a node is one everywhere":            rules.Node == name && pod.Node == name && node.Labels["kubernetes.io/hostname"] == name && out[0].Source == collect.RulesSource(name),
			"known label keys stay":               len(node.Labels) == 3 && len(svc.Selector) == 2 && svc.Selector["app"] != "",
			"a flag of a label stays":             node.Labels["node-role.kubernetes.io/worker"] == "",
			"the rules' address is the pod's":     rules.Ports[0].Endpoints[0] == netip.AddrPortFrom(pod.IPs[0], 80) && pod.IPs[0] != ip,
			"also in texts":                       strings.HasSuffix(rules.Unknown[0], " "+pod.IPs[0].String()+":80"),
			"who writes rules stays":              rules.Process == "kube-proxy",
			"the selector selects":                subset(svc.Selector, pod.Labels),
			"a Service is one everywhere":         rules.Ports[0].Service == out[2].Object.Name && rules.Ports[0].Namespace == out[3].Object.Namespace && action.Service == out[2].Object.Name,
			"an Event is about its pod":           event.Regarding == out[3].Object && event.UID == out[3].UID,
			"a message keeps the kind of probe":   strings.HasPrefix(event.Message, "Readiness probe failed: word-"),
			"a command keeps what it does":        action.Text == "kubectl -n "+out[2].Object.Namespace+" scale deploy/"+out[2].Object.Name+" --replicas=7",
			"reasons stay":                        event.Reason == "Unhealthy" && node.Ready.Reason == "KubeletReady",
			"different names stay different":      out[2].Object.Name != out[3].Object.Name && name != out[2].Object.Namespace,
			"private addresses stay private ones": pod.IPs[0].IsPrivate() && pod.IPs[0].Is4(),
		} {
			if !ok {
				t.Errorf("learnt %v: not so: %s\n%+v\n%+v\n%+v\n%+v\n%+v\n%+v", learn, what, rules, node, svc, pod, action, event)
			}
		}
	}
}

func subset(a, b map[string]string) bool {
	for k, v := range a {
		if b[k] != v {
			return false
		}
	}
	return true
}

// TestAddressesKeepWhatRoutingSees: family, range, and how many leading bits two share;
// different ones stay different, and what is in a prefix is in what it becomes.
func TestAddressesKeepWhatRoutingSees(t *testing.T) {
	anyAddr := rapid.Custom(func(t *rapid.T) netip.Addr {
		if rapid.Bool().Draw(t, "v4") {
			return netip.AddrFrom4([4]byte(rapid.SliceOfN(rapid.Byte(), 4, 4).Draw(t, "ip")))
		}
		return netip.AddrFrom16([16]byte(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "ip")))
	})
	rapid.Check(t, func(t *rapid.T) {
		a := anonymise.New()
		x, y := anyAddr.Draw(t, "x"), anyAddr.Draw(t, "y")
		if x.Is4() == y.Is4() && rapid.Bool().Draw(t, "near") { // y shares some bits with x
			p, err := x.Prefix(rapid.IntRange(0, x.BitLen()).Draw(t, "bits"))
			if err != nil {
				t.Fatal(err)
			}
			b, low := p.Addr().AsSlice(), y.AsSlice()
			for i := p.Bits(); i < x.BitLen(); i++ {
				b[i/8] |= low[i/8] & (1 << (7 - i%8))
			}
			y, _ = netip.AddrFromSlice(b)
		}
		bits := rapid.IntRange(0, x.BitLen()).Draw(t, "prefix")
		e := a.Event(collect.Event{Payload: &collect.Service{ClusterIPs: []netip.Addr{x, y, x}, SourceRanges: []netip.Prefix{netip.PrefixFrom(x, bits).Masked()}}})
		s := e.Payload.(*collect.Service)
		p, q := s.ClusterIPs[0], s.ClusterIPs[1]
		if s.ClusterIPs[2] != p || p.Is4() != x.Is4() || p.Is4In6() != x.Is4In6() {
			t.Fatalf("%s became %s and %s", x, p, s.ClusterIPs[2])
		}
		if x.IsPrivate() != p.IsPrivate() || x.IsLoopback() != p.IsLoopback() || x.IsLinkLocalUnicast() != p.IsLinkLocalUnicast() || x.IsMulticast() != p.IsMulticast() || x.IsUnspecified() != p.IsUnspecified() {
			t.Fatalf("%s became %s, which is of another range", x, p)
		}
		if x.BitLen() == y.BitLen() && !x.Is4In6() && !y.Is4In6() && shared(x, y) != shared(p, q) {
			t.Fatalf("%s and %s share %d bits, %s and %s share %d", x, y, shared(x, y), p, q, shared(p, q))
		}
		if (x == y) != (p == q) {
			t.Fatalf("%s and %s became %s and %s", x, y, p, q)
		}
		if r := s.SourceRanges[0]; !r.Contains(p) || r.Bits() != bits {
			t.Fatalf("%s/%d became %s, which lacks %s", x, bits, r, p)
		}
	})
}

func shared(x, y netip.Addr) int {
	for i := range x.BitLen() {
		p, err := x.Prefix(i + 1)
		if err != nil || !p.Contains(y) {
			return i
		}
	}
	return x.BitLen()
}
