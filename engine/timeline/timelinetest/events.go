package timelinetest

import (
	"strings"

	"github.com/kconverge/kconverge/collect"
)

// kubeEvent is NAME REASON ATTR… about a pod of that name, or KIND/NAME; its message
// is what follows the attributes first= last= count= from=COMPONENT init=true object=EVENT.
func (sc *Scenario) kubeEvent(about, reason string, f []string) collect.Event {
	kind, name, ok := strings.Cut(about, "/")
	if !ok {
		kind, name = "Pod", about
	}
	k := &collect.KubeEvent{Regarding: collect.ObjectKey{Kind: kind, Namespace: "default", Name: name}, Reason: reason, Count: 1, Component: "kubelet"}
	if kind == "Pod" {
		k.UID = sc.uid(name)
	}
	object := name + "." + reason
	for len(f) > 0 {
		key, v, ok := strings.Cut(f[0], "=")
		if !ok {
			break
		}
		switch key {
		case "first":
			k.First = Epoch.Add(dur(v))
		case "last":
			k.Last = Epoch.Add(dur(v))
		case "count":
			k.Count = num(v)
		case "from":
			k.Component = v
		case "init":
			k.Init = v == "true"
		case "object":
			object = v
		default:
			panic("unknown event attribute " + f[0])
		}
		f = f[1:]
	}
	if k.First.IsZero() {
		k.First = k.Last
	}
	k.Message = strings.Join(f, " ")
	sc.rv++
	return collect.Event{Source: collect.SourceKubeEvents, Op: collect.OpAdded, ResourceVersion: sc.rv,
		Object: collect.ObjectKey{Kind: "Event", Namespace: "default", Name: object}, UID: "u-" + object, Payload: k}
}

// proxyState is started=TIME [failures=N] [unhealthy] [queued=TIME] [synced=TIME]
// [syncs=N/SECONDS] [pending=N].
func proxyState(node string, f []string) *collect.ProxyState {
	p := &collect.ProxyState{Node: node, Reachable: true}
	for _, a := range f {
		key, v, _ := strings.Cut(a, "=")
		switch key {
		case "started":
			p.Started = Epoch.Add(dur(v))
		case "failures":
			p.SyncFailures = uint64(num(v))
		case "unhealthy":
			p.Healthy = new(bool)
		case "queued":
			p.LastQueued = Epoch.Add(dur(v))
		case "synced":
			p.LastSync = Epoch.Add(dur(v))
		case "syncs":
			n, seconds, _ := strings.Cut(v, "/")
			p.SyncCount, p.SyncSeconds = uint64(num(n)), float64(num(seconds))
		case "pending":
			p.PendingEndpoints = int(num(v))
		default:
			panic("unknown proxy attribute " + a)
		}
	}
	return p
}

// syncStep is NODE STEP [gen=N] [DETAIL] of a node's own rule sync.
func syncStep(node, step string, f []string) collect.Event {
	s := &collect.SyncStep{Node: node, Step: step}
	for len(f) > 0 {
		v, ok := strings.CutPrefix(f[0], "gen=")
		if !ok {
			break
		}
		s.Generation, f = uint32(num(v)), f[1:]
	}
	s.Detail = strings.Join(f, " ")
	return collect.Event{Source: collect.RuleSyncSource(node), Payload: s}
}

// Uncomment drops comments and empty lines.
func Uncomment(s string) string {
	var b strings.Builder
	for line := range strings.Lines(s) {
		line, _, _ = strings.Cut(line, "#")
		if line = strings.TrimRight(line, " \n"); line != "" {
			b.WriteString(line + "\n")
		}
	}
	return b.String()
}
