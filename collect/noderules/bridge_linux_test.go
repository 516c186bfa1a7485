package noderules

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/kconverge/kconverge/collect"
)

// TestADumpDuringChangesIsBridgedByTheirNotifications dumps while a writer
// commits without a pause: no generation covers a dump, and still each comes out
// as the state of one generation.
func TestADumpDuringChangesIsBridgedByTheirNotifications(t *testing.T) {
	overlaps := 40
	if testing.Short() {
		overlaps = 8
	}
	n := newNS(t)
	n.nft(t, fixture(t, "kube-proxy-1.37-base-ip.nft"))
	r, _ := standing(t, n)
	defer r.leave(t)
	r.watch.start()

	p := newProxy("ip", 25)
	gen := r.tracker.gen
	truth := map[uint32][]collect.RulePort{gen: p.ports()}
	random := rand.New(rand.NewPCG(3, 3))
	stop := make(chan struct{})
	wrote := make(chan error, 1)
	go func() {
		wrote <- func() error {
			for {
				select {
				case <-stop:
					return nil
				default:
				}
				sweep := p.sweep()
				before := p.ports()
				for _, script := range []string{sweep, p.pick(random)} {
					if script == "" {
						continue
					}
					if err := n.tryNft(script); err != nil {
						return fmt.Errorf("%w\n%s", err, script)
					}
					gen = nextGen(gen)
					truth[gen] = p.ports()
					if script == sweep {
						truth[gen] = before
					}
				}
			}
		}()
	}()
	type look struct {
		from, gen uint32
		ports     []collect.RulePort
		odd       []string
	}
	var looks []look
	for found := 0; found < overlaps; {
		s, err := r.query.bridge(context.Background())
		if err != nil {
			if unsettled(err) {
				continue
			}
			t.Fatal(err)
		}
		tr, ok, err := r.catchUp(context.Background(), s)
		if err != nil {
			t.Fatal(err)
		}
		if !ok || tr.gen != s.gen {
			t.Fatalf("from %d to %d: at %d, ok %v", s.from, s.gen, tr.gen, ok)
		}
		if s.from != s.gen {
			found++
		}
		looks = append(looks, look{s.from, s.gen, tr.ports(), tr.odd})
	}
	close(stop)
	if err := <-wrote; err != nil {
		t.Fatal(err)
	}
	for _, l := range looks {
		if diff := cmp.Diff(truth[l.gen], l.ports, cmpPorts); diff != "" || len(l.odd) > 0 {
			t.Fatalf("from generation %d to %d, unknown %q (-written +seen):\n%s", l.from, l.gen, l.odd, diff)
		}
	}
	t.Logf("%d dumps, %d of them while generations changed, %d generations", len(looks), overlaps, len(truth))
}
