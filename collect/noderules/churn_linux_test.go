package noderules

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/collect/noderules/nftwitness"
)

var cmpPorts = cmp.Options{cmpopts.EquateEmpty(), cmpopts.EquateComparable(netip.AddrPort{}, netip.Addr{}, netip.Prefix{})}

// upTo is the events of generations up to gen, the baseline included.
func upTo(events []collect.Event, gen uint32) (out []collect.Event) {
	for _, e := range events {
		if r, ok := e.Payload.(*collect.Rules); ok && !older(gen, r.Generation) {
			out = append(out, e)
		}
	}
	return out
}

func TestEveryGenerationOfAChurningProxyIsResolvedRight(t *testing.T) {
	for _, family := range []string{"ip", "ip6"} {
		t.Run(family, func(t *testing.T) {
			instants := 100 // in each family
			if testing.Short() {
				instants = 15
			}
			n := newNS(t)
			n.nft(t, fixture(t, "kube-proxy-1.37-base-"+family+".nft"))
			q, err := openQuery(Options{NetNS: n.fd}.withDefaults())
			if err != nil {
				t.Fatal(err)
			}
			defer q.close()
			src, c := start(t, Options{Node: "n", NetNS: n.fd})
			c.wait(t, 0, isSynced)

			// The writer runs as long as it has tokens, beside the readers.
			p := newProxy(family, 9)
			r := rand.New(rand.NewPCG(1, uint64(len(family))))
			gen, err := q.generation()
			if err != nil {
				t.Fatal(err)
			}
			truth := map[uint32][]collect.RulePort{gen: p.ports()}
			tokens := make(chan int, instants)
			wrote := make(chan error, 1)
			go func() {
				wrote <- func() error {
					for k := range tokens {
						for range k {
							if r.IntN(3) == 0 {
								if sweep := p.sweep(); sweep != "" {
									if err := n.tryNft(sweep); err != nil {
										return err
									}
									truth[nextGen(gen)] = truth[gen]
									gen = nextGen(gen)
								}
							}
							script := p.pick(r)
							if script == "" {
								continue
							}
							if err := n.tryNft(script); err != nil {
								return fmt.Errorf("%w\n%s", err, script)
							}
							gen = nextGen(gen)
							truth[gen] = p.ports()
						}
					}
					return nil
				}()
			}()
			type look struct {
				by    string
				gen   uint32
				ports []collect.RulePort
			}
			var looks []look
			for range instants {
				tokens <- 1 + len(looks)%3
				rules, err := Read(context.Background(), Options{NetNS: n.fd})
				if err != nil {
					t.Fatal(err)
				}
				looks = append(looks, look{"Read", rules.Generation, rules.Ports})
				for {
					before, err := q.generation()
					if err != nil {
						t.Fatal(err)
					}
					listed := n.list(t)
					after, err := q.generation()
					if err != nil {
						t.Fatal(err)
					}
					if before == after {
						looks = append(looks, look{"nft", before, nftwitness.Ports(t, listed)})
						break
					}
				}
			}
			close(tokens)
			if err := <-wrote; err != nil {
				t.Fatal(err)
			}
			if now, err := q.generation(); err != nil || now != gen {
				t.Fatalf("the namespace is at generation %d, the writer counted %d (%v)", now, gen, err)
			}
			vouched(t, n, src, c)
			events := c.all()
			for _, e := range events {
				if g, ok := e.Payload.(*collect.Gap); ok {
					t.Errorf("a gap without a loss: %+v", g)
				}
				if r, ok := e.Payload.(*collect.Rules); ok && len(r.Unknown) > 0 {
					t.Errorf("generation %d: unknown %q", r.Generation, r.Unknown)
				}
			}
			for _, l := range looks {
				if diff := cmp.Diff(truth[l.gen], l.ports, cmpPorts); diff != "" {
					t.Fatalf("%s at generation %d (-written +seen):\n%s", l.by, l.gen, diff)
				}
			}
			for g, want := range truth {
				if diff := cmp.Diff(want, state(upTo(events, g)), cmpPorts); diff != "" {
					t.Fatalf("events up to generation %d (-written +believed):\n%s", g, diff)
				}
			}
			t.Logf("%d generations, %d looks", len(truth), len(looks))
		})
	}
}
