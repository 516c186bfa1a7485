package timelinetest

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kconverge/kconverge/collect"
)

func ips(s string) (out []netip.Addr) {
	for x := range strings.SplitSeq(s, ",") {
		out = append(out, netip.MustParseAddr(x))
	}
	return out
}

func num(s string) int32 {
	n, err := strconv.ParseInt(s, 10, 32)
	if err != nil {
		panic(err)
	}
	return int32(n)
}

func podAttr(p *collect.Pod, a string) {
	k, v, _ := strings.Cut(a, "=")
	since := func() time.Time {
		if v == "" {
			return time.Time{}
		}
		return Epoch.Add(dur(v))
	}
	switch k {
	case "ip":
		p.IPs = ips(v)
	case "node":
		p.Node = v
	case "label":
		k, v, _ := strings.Cut(v, ":")
		p.Labels = maps.Clone(p.Labels)
		if p.Labels == nil {
			p.Labels = map[string]string{}
		}
		p.Labels[k] = v
	case "ready":
		p.Ready = &collect.Condition{Status: true, Since: since()}
	case "unready":
		p.Ready = &collect.Condition{Since: since()}
	case "created":
		p.Created = since()
	case "started":
		p.Started = since()
	case "stopped":
		p.Stopped = since()
	case "scheduled":
		p.Scheduled = &collect.Condition{Status: true, Since: since()}
	case "initialized":
		p.Initialized = &collect.Condition{Status: true, Since: since()}
	case "unschedulable":
		p.Scheduled = &collect.Condition{Since: since(), Reason: "Unschedulable"}
	case "waiting": // =REASON/RESTARTS
		reason, n, _ := strings.Cut(v, "/")
		p.Waiting, p.Restarts = reason, num(n)
	case "probe":
		p.ReadinessPeriod, p.ReadinessSuccessThreshold = dur(v), 1
	case "containersready":
		p.ContainersReady = &collect.Condition{Status: true, Since: since()}
	case "hostnetwork":
		p.HostNetwork = true
	case "terminating": // =REQUESTED/GRACE
		at, grace, _ := strings.Cut(v, "/")
		p.Grace = dur(grace)
		p.Deletion = Epoch.Add(dur(at)).Add(p.Grace)
	case "phase":
		p.Phase = v
	case "disruption":
		p.Disruption = &collect.Condition{Status: true, Reason: v}
	case "owner":
		kind, name, _ := strings.Cut(v, "/")
		p.Owner = &collect.Owner{Kind: kind, Name: name, UID: "u-" + name}
	case "port": // name:number
		name, n, _ := strings.Cut(v, ":")
		p.Ports = append(slices.Clone(p.Ports), collect.NamedPort{Name: name, Port: num(n), Protocol: collect.TCP})
	default:
		panic("unknown pod attribute " + a)
	}
}

func svcAttr(s *collect.Service, a string) {
	k, v, _ := strings.Cut(a, "=")
	switch k {
	case "ip":
		s.ClusterIPs, s.Families = ips(v), nil
		for _, ip := range s.ClusterIPs {
			s.Families = append(s.Families, collect.FamilyOf(ip))
		}
	case "selector":
		s.Selector = map[string]string{}
		for x := range strings.SplitSeq(v, "+") {
			k, v, _ := strings.Cut(x, ":")
			s.Selector[k] = v
		}
	case "port": // number:target[:name]
		s.Ports = nil
		for x := range strings.SplitSeq(v, ",") {
			f := strings.Split(x+"::", ":")
			p := collect.ServicePort{Port: num(f[0])}
			p.Name, p.Protocol = portName(f[2])
			if n, err := strconv.Atoi(f[1]); err == nil {
				p.Target = int32(n)
			} else {
				p.TargetName = f[1]
			}
			s.Ports = append(s.Ports, p)
		}
	case "internal":
		s.InternalPolicy = v
	case "external":
		s.ExternalPolicy = v
	case "type":
		s.Kind = v
	case "nodeport":
		s.Ports = slices.Clone(s.Ports)
		s.Ports[0].NodePort = num(v)
	case "affinity":
		s.SessionAffinity, s.AffinityTimeout = "ClientIP", dur(v)
	case "lb":
		s.Kind, s.LoadBalancerIPs = "LoadBalancer", ips(v)
	case "from":
		s.SourceRanges = []netip.Prefix{netip.MustParsePrefix(v)}
	case "proxy":
		s.ProxyName = v
	case "distribution":
		s.TrafficDistribution = v
	case "publish":
		s.PublishNotReadyAddresses = v == "true"
	case "headless":
		s.Headless, s.ClusterIPs = true, nil
	case "noselector":
		s.Selector = nil
	case "created":
		s.Created = Epoch.Add(dur(v))
	case "written":
		s.Written = Epoch.Add(dur(v))
	default:
		panic("unknown service attribute " + a)
	}
}

// sliceAttr is svc=NAME, family=IPv6, port=NUMBER[:name],…, managed=WHO, created=TIME,
// written=TIME, or an endpoint:
// POD/cond/… or ip:ADDRESS/cond/…
func (sc *Scenario) sliceAttr(s *collect.EndpointSlice, a string) {
	if k, v, ok := strings.Cut(a, "="); ok && !strings.Contains(k, "/") {
		switch k {
		case "svc":
			s.Service = v
		case "managed":
			s.ManagedBy = v
		case "family":
			s.Family = collect.Family(v)
		case "trigger":
			if s.TriggerTime = (time.Time{}); v != "none" {
				s.TriggerTime = Epoch.Add(dur(v))
			}
		case "port":
			s.Ports = slicePorts(v)
		case "created":
			s.Created = Epoch.Add(dur(v))
		case "written":
			s.Written = Epoch.Add(dur(v))
		default:
			panic("unknown slice attribute " + a)
		}
		return
	}
	parts := strings.Split(a, "/")
	e := collect.SliceEndpoint{}
	if ip, ok := strings.CutPrefix(parts[0], "ip:"); ok {
		e.Address = netip.MustParseAddr(ip)
	} else {
		p := sc.pods[parts[0]]
		if p == nil {
			panic("no pod " + parts[0])
		}
		i := max(0, slices.IndexFunc(p.IPs, func(ip netip.Addr) bool { return collect.FamilyOf(ip) == s.Family }))
		e.Address, e.PodName, e.PodUID, e.Node = p.IPs[i], parts[0], sc.uid(parts[0]), p.Node
	}
	for _, c := range parts[1:] {
		k, v, _ := strings.Cut(c, "=")
		switch k {
		case "ready":
			e.Ready, e.Serving = true, true
		case "serving":
			e.Serving = true
		case "notserving": // as with publishNotReadyAddresses
			e.Serving = false
		case "terminating":
			e.Terminating = true
		case "unready":
		case "zone":
			e.HintZones = strings.Split(v, "+")
		case "node":
			e.HintNodes = strings.Split(v, "+")
		case "uid":
			e.PodUID = v
		case "ip":
			e.Address = netip.MustParseAddr(v)
		default:
			panic("unknown condition " + c)
		}
	}
	s.Endpoints = append(s.Endpoints, e)
}

func slicePorts(s string) (out []collect.SlicePort) {
	for x := range strings.SplitSeq(s, ",") {
		n, name, _ := strings.Cut(x, ":")
		p := collect.SlicePort{Port: num(n)}
		p.Name, p.Protocol = portName(name)
		out = append(out, p)
	}
	return out
}

// portName is NAME or NAME!UDP.
func portName(s string) (string, collect.Protocol) {
	name, protocol, _ := strings.Cut(s, "!")
	return name, cmp.Or(collect.Protocol(protocol), collect.TCP)
}

// endpointsAttr is POD/ready, POD/notready, ip:ADDRESS/…, truncated,
// notmirrored, created=TIME, written=TIME, or port=NUMBER[:name],… of the addresses after it.
func (sc *Scenario) endpointsAttr(e *collect.Endpoints, a string) {
	switch a {
	case "truncated":
		e.Truncated = true
		return
	case "notmirrored":
		e.NotMirrored = true
		return
	}
	if v, ok := strings.CutPrefix(a, "port="); ok {
		sc.v1Ports = slicePorts(v)
		return
	}
	for k, t := range map[string]*time.Time{"created=": &e.Created, "written=": &e.Written} {
		if v, ok := strings.CutPrefix(a, k); ok {
			*t = Epoch.Add(dur(v))
			return
		}
	}
	who, cond, _ := strings.Cut(a, "/")
	x := collect.EndpointsAddress{Ready: cond == "ready", Ports: []collect.SlicePort{{Protocol: collect.TCP, Port: 8080}}}
	if sc.v1Ports != nil {
		x.Ports = sc.v1Ports
	}
	if ip, ok := strings.CutPrefix(who, "ip:"); ok {
		x.IP = netip.MustParseAddr(ip)
	} else {
		x.IP, x.PodName, x.PodUID = sc.pods[who].IPs[0], who, sc.uid(who)
	}
	e.Addresses = append(e.Addresses, x)
}

// spread repeats a line for a name such as p{1..3}, with {} for the number in
// its attributes, and what stands in a list such as p{1..3}/ready, or in
// web=10.0.0.{1..3}:80,10.0.1.1:80.
func spread(f []string) (out [][]string) {
	if len(f) > 2 && f[0] != "rules" {
		if names := expand(f[2]); len(names) > 1 {
			for i, name := range names {
				line := []string{f[0], f[1], name}
				for _, a := range f[3:] {
					line = append(line, strings.ReplaceAll(a, "{}", strconv.Itoa(first(f[2])+i)))
				}
				out = append(out, line)
			}
			return out
		}
	}
	var line []string
	for _, a := range f {
		key, list, ok := strings.Cut(a, "=")
		if f[0] != "rules" || !ok {
			line = append(line, expand(a)...)
			continue
		}
		var all []string
		for x := range strings.SplitSeq(list, ",") {
			all = append(all, expand(x)...)
		}
		line = append(line, key+"="+strings.Join(all, ","))
	}
	return [][]string{line}
}

// first is the first number of a range.
func first(s string) int {
	_, s, _ = strings.Cut(s, "{")
	s, _, _ = strings.Cut(s, "..")
	return int(num(s))
}

func expand(s string) (out []string) {
	before, rest, ok1 := strings.Cut(s, "{")
	inner, after, ok2 := strings.Cut(rest, "}")
	_, to, ok3 := strings.Cut(inner, "..")
	if !ok1 || !ok2 || !ok3 {
		return []string{s}
	}
	for i := first(s); i <= int(num(to)); i++ {
		out = append(out, before+strconv.Itoa(i)+after)
	}
	return out
}

func nodeAttr(n *collect.Node, a string) {
	k, v, _ := strings.Cut(a, "=")
	switch k {
	case "ready":
		n.Ready, n.Heard = &collect.Condition{Status: true}, time.Time{}
		if v != "" {
			n.Ready.Since = Epoch.Add(dur(v))
		}
	case "notready":
		n.Ready = &collect.Condition{}
		if v != "" {
			n.Ready.Since = Epoch.Add(dur(v))
		}
	case "heard":
		n.Heard = Epoch.Add(dur(v))
	case "zone":
		n.Zone = v
	case "cordoned":
		n.Unschedulable = true
	default:
		panic("unknown node attribute " + a)
	}
}

func loadAttr(w *collect.Workload, a string) {
	k, v, _ := strings.Cut(a, "=")
	switch k {
	case "owner":
		kind, name, _ := strings.Cut(v, "/")
		w.Owner = &collect.Owner{Kind: kind, Name: name, UID: "u-" + name}
	case "gen":
		w.Generation = int64(num(v))
	case "seen":
		w.ObservedGeneration = int64(num(v))
	case "replicas":
		w.Replicas = num(v)
	case "status":
		w.StatusReplicas = num(v)
	case "updated":
		w.Updated = num(v)
	case "available":
		w.Available, w.Ready = num(v), num(v)
	case "readynow":
		w.Ready = num(v)
	case "minready":
		w.MinReady = dur(v)
	case "partition":
		w.Partition = num(v)
	case "rev":
		w.Revision = v
	case "label":
		k, v, _ := strings.Cut(v, ":")
		w.TemplateLabels = maps.Clone(w.TemplateLabels)
		if w.TemplateLabels == nil {
			w.TemplateLabels = map[string]string{}
		}
		w.TemplateLabels[k] = v
	default:
		panic("unknown workload attribute " + a)
	}
}
