package lanes_test

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/kconverge/kconverge/engine/lanes"
	"github.com/kconverge/kconverge/engine/lanes/lanestest"
	"github.com/kconverge/kconverge/engine/timeline"
)

func at(ms int) time.Time { return lanestest.Start.Add(time.Duration(ms) * time.Millisecond) }

func TestTheInstantTableSaysWhatEachPlaneHadAndSinceWhen(t *testing.T) {
	snap := lanestest.Converging()
	var got []string
	for _, r := range lanes.Instant(snap.Services[0], at(10000)) {
		got = append(got, strings.Join([]string{r.Plane, r.Set, r.Diff, r.Pod, r.Note}, "|"))
	}
	want := []string{
		"wanted|5|.1.2  .1.3  .2.2  .2.3  .3.4||",
		"slices|5|=||web-bx4wq rev 1841",
		"endpoints v1|5|=||rev 1842",
		"node-1|5|=||generation 77",
		"node-2|5|=||generation 78",
		"node-3|7|+ 10.244.3.5:8080|web-7d9c4b-x7k2p|stopped 0.74 s",
		"||+ 10.244.1.4:8080|web-7d9c4b-p4d8c|stopped 0.62 s",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestBeforeAPodStopsAStaleEndpointIsOnlyBehind(t *testing.T) {
	snap := lanestest.Converging()
	rows := lanes.Instant(snap.Services[0], at(8900))
	last := rows[len(rows)-1]
	if last.Tone != lanes.Warn || last.Note != "for 0.64 s" {
		t.Errorf("row %+v", last)
	}
}

func TestBeforeTheFirstWordAPlaneIsNotSeen(t *testing.T) {
	snap := lanestest.Converging()
	rows := lanes.Instant(snap.Services[0], snap.First.Add(-time.Second))
	for _, r := range rows[1:] {
		if r.Diff != "not seen yet" {
			t.Errorf("%s: %q", r.Plane, r.Diff)
		}
	}
}

func TestTheTitleOfAnInstantCountsFromTheLastAction(t *testing.T) {
	snap := lanestest.Converging()
	a, after := lanes.InstantTitle(snap, snap.Services[0], at(9960), time.UTC)
	if a != "at 12:04:18.460" || after != "+1.75 s after scale web 7→5" {
		t.Errorf("%q, %q", a, after)
	}
	if _, after := lanes.InstantTitle(snap, snap.Services[0], at(100), time.UTC); after != "" {
		t.Errorf("before any action: %q", after)
	}
}

func TestAddressesKeepWhatTellsThemApart(t *testing.T) {
	ips := func(ss ...string) (out []netip.Addr) {
		for _, s := range ss {
			out = append(out, netip.MustParseAddr(s))
		}
		return out
	}
	for _, c := range []struct {
		in   []netip.Addr
		want string
	}{
		{nil, ""},
		{ips("10.244.1.2"), "10.244.1.2"},
		{ips("10.244.1.2", "10.244.3.4"), ".1.2  .3.4"},
		{ips("10.244.1.2", "10.245.3.4"), "10.244.1.2  10.245.3.4"},
		{ips("fd00::1", "fd00::2"), "…::1  …::2"},
		{ips("fd00:1::1", "fe00::2"), "fd00:1::1  fe00::2"},
		{ips("fd00:10:244:1::2", "fd00:10:244:2::2"), "…1::2  …2::2"},
		{ips("10.244.1.2", "fd00:10:244:1::2"), "10.244.1.2  fd00:10:244:1::2"},
		{ips("10.244.1.2", "10.244.2.2", "fd00:10:244:1::2", "fd00:10:244:2::2"), ".1.2  .2.2  …1::2  …2::2"},
	} {
		if got := lanes.ShortAddresses(c.in); got != c.want {
			t.Errorf("%v: %q, want %q", c.in, got, c.want)
		}
	}
}

func TestTheChangeUnderTheCursorIsTheOneThatRuns(t *testing.T) {
	svc := lanestest.Converging().Services[0]
	for _, c := range []struct {
		key  string
		at   int
		want string
	}{
		{"wanted", 4600, "add-web-7d9c4b-x7k2p"},
		{"wanted", 6000, "add-web-7d9c4b-9rjvn"},
		{"pod/uid-web-7d9c4b-x7k2p", 6000, "add-web-7d9c4b-x7k2p"},
		{"rules@node-3", 8254, "remove-web-7d9c4b-x7k2p"},
		{"wanted", 100, "add-web-7d9c4b-x7k2p"},
	} {
		if p := lanes.PathAt(svc, c.key, at(c.at)); p == nil || p.ID != c.want {
			t.Errorf("%s at %d: %v, want %s", c.key, c.at, p, c.want)
		}
	}
	if p := lanes.PathAt(&timeline.Service{}, "wanted", at(0)); p != nil {
		t.Errorf("a Service without changes has %v", p)
	}
}

func TestTheChangePanelCountsFromTheOrigin(t *testing.T) {
	snap := lanestest.Converging()
	p := snap.Services[0].Path("remove-web-7d9c4b-x7k2p")
	var got []string
	for _, l := range lanes.Change(p, snap.Now, time.UTC, 10) {
		got = append(got, l.Label+": "+l.Text)
	}
	want := "cause: 12:04:16.752  pod terminating\nby: scale\nslice: +9 ms\nendpts: +21 ms\nnode-1: +0.24 s\nnode-2: +0.88 s\nnode-3: not yet, 2.35 s\nstopped: routed for 1.3 s, growing !\n: needs a preStop above 2.35 s, growing"
	if s := strings.Join(got, "\n"); s != want {
		t.Errorf("got\n%s\nwant\n%s", s, want)
	}
}

func TestTheShareOfFailingConnectionsIsThatOfTheWorstNode(t *testing.T) {
	svc := lanestest.Converging().Services[0]
	if got := lanes.Failing(svc, at(10000)); got != "2 of 7 new connections from node-3 would fail at this instant" {
		t.Errorf("%q", got)
	}
	if got := lanes.Failing(svc, at(8900)); got != "" {
		t.Errorf("before anything stopped: %q", got)
	}
}

func TestARemovalIsRankedAmongThoseSeen(t *testing.T) {
	svc := lanestest.Converging().Services[0]
	if got := lanes.RiskRank(svc.Paths, svc.Path("remove-web-7d9c4b-x7k2p")); got != "(the most of 2 removals seen)" {
		t.Errorf("%q", got)
	}
	if got := lanes.RiskRank(svc.Paths, svc.Path("remove-web-7d9c4b-p4d8c")); got != "(most of 2 removals seen: 2.35 s)" {
		t.Errorf("%q", got)
	}
	if got := lanes.RiskRank(svc.Paths, svc.Path("add-web-7d9c4b-p4d8c")); got != "" {
		t.Errorf("an addition: %q", got)
	}
}

func TestNodesByLatenessPutTheMissingFirst(t *testing.T) {
	p := lanestest.Converging().Services[0].Path("remove-web-7d9c4b-x7k2p")
	var got []string
	for _, h := range lanes.ByLateness(p.Rules) {
		got = append(got, h.Plane.Node)
	}
	if s := strings.Join(got, " "); s != "node-3 node-2 node-1" {
		t.Errorf("order %s", s)
	}
}
