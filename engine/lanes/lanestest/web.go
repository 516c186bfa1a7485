package lanestest

import (
	"fmt"
	"time"

	"github.com/kconverge/kconverge/engine/timeline"
)

// Start is when the story of Web takes place.
var Start = time.Date(2026, 11, 29, 12, 4, 8, 500e6, time.UTC)

func ms(n int) time.Duration { return time.Duration(n) * time.Millisecond }

func lags(slice, endpoints, n1, n2, n3 int) Lags {
	d := func(n int) time.Duration {
		if n < 0 {
			return Never
		}
		return ms(n)
	}
	return Lags{d(slice), d(endpoints), map[string]time.Duration{"node-1": d(n1), "node-2": d(n2), "node-3": d(n3)}}
}

// Web is the story of the timeline mock-up: Deployment web goes from 4 to 7
// pods and, three seconds later, to 5, while node-3's rules are late. The
// Snapshot is taken at after since Start; the story is 10.6 s long.
func Web(after time.Duration) Spec {
	at := func(n int) time.Time { return Start.Add(ms(n)) }
	first := Start.Add(-221 * time.Second)
	now := Start.Add(after)
	s := Spec{
		Namespace: "default", Name: "web", First: first, Now: now, Watermark: now.Add(-150 * time.Millisecond),
		Nodes: []string{"node-1", "node-2", "node-3"},
	}
	for i, ip := range []string{"10.244.1.2", "10.244.1.3", "10.244.2.2", "10.244.2.3"} {
		s.Pods = append(s.Pods, Pod{Name: fmt.Sprintf("web-7d9c4b-%c8m2q", 'a'+i), Node: fmt.Sprintf("node-%d", i/2+1), IP: ip, Base: true, Ready: first.Add(-30 * time.Second)})
	}
	s.Pods = append(s.Pods,
		Pod{Name: "web-7d9c4b-x7k2p", Node: "node-3", IP: "10.244.3.5", Created: at(2030), Started: at(2560), Ready: at(4571),
			Term: at(8252), Stop: at(9260), Gone: at(9300), Add: lags(9, 21, 240, 980, 2920), Remove: lags(9, 21, 240, 880, -1)},
		Pod{Name: "web-7d9c4b-p4d8c", Node: "node-1", IP: "10.244.1.4", Created: at(2035), Started: at(2660), Ready: at(4640),
			Term: at(8255), Stop: at(9380), Gone: at(9420), Add: lags(8, 19, 910, 910, 2851), Remove: lags(8, 20, 237, 877, -1)},
		Pod{Name: "web-7d9c4b-9rjvn", Node: "node-3", IP: "10.244.3.4", Created: at(2040), Started: at(2760), Ready: at(4940),
			Add: lags(7, 16, 611, 611, 2551)})
	action := func(n int, text string) {
		if t := at(n); !t.After(now) {
			s.Actions = append(s.Actions, timeline.Mark{At: t, Kind: "action", Text: text})
		}
	}
	action(1990, "scale web 4→7")
	action(8210, "scale web 7→5")
	for _, n := range []int{4575, 4644, 4945, 8257} {
		if t := at(n); !t.After(now) {
			s.Reconciles = append(s.Reconciles, t)
		}
	}
	var pods []Pod
	for _, p := range s.Pods {
		if p.Base || !p.Created.After(now) {
			for _, t := range []*time.Time{&p.Started, &p.Ready, &p.Term, &p.Stop, &p.Gone} {
				if t.After(now) {
					*t = time.Time{}
				}
			}
			pods = append(pods, p)
		}
	}
	s.Pods = pods
	return s
}

// Converging is Web while node-3 still routes to two stopped pods.
func Converging() *timeline.Snapshot { return Web(10600 * time.Millisecond).Snapshot() }

// Converged is Web long before anything happened.
func Converged() *timeline.Snapshot { return Web(ms(1500)).Snapshot() }
