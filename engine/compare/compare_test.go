package compare

import (
	"cmp"
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// lognormal are n samples about a median.
func lognormal(rnd *rand.Rand, n int, median time.Duration, sigma float64) (out []Sample) {
	for range n {
		out = append(out, Sample{D: time.Duration(float64(median) * math.Exp(sigma*rnd.NormFloat64()))})
	}
	return sorted(out)
}

func sorted(list []Sample) []Sample {
	slices.SortFunc(list, func(a, b Sample) int { return cmp.Compare(a.D, b.D) })
	return list
}

// run is a recording in which every hop has n samples.
func run(rnd *rand.Rand, n int, sigma float64) Samples {
	s := Samples{map[Hop][]Sample{}, map[Hop]int{}}
	for i, h := range hops {
		s.Of[h] = lognormal(rnd, n, time.Duration(i+1)*40*time.Millisecond, sigma)
	}
	return s
}

// mostFalse is 5 % of the comparisons. The method's own rate is 2 %, so that it is met
// but for one time in 500.
const comparisons, mostFalse = 200, 10

func TestARunThatIsRunAgainIsNoDifference(t *testing.T) {
	for _, n := range []int{8, 30, 100} {
		rnd, wrong := rand.New(rand.NewPCG(7, uint64(n))), 0
		for range comparisons {
			if differs, told := Compare("a", "b", run(rnd, n, 0.5), run(rnd, n, 0.5)).Differs(); differs {
				wrong++
			} else if !told {
				t.Fatalf("n = %d: nothing is told of %d samples", n, n)
			}
		}
		t.Logf("n = %d: %d of %d differ", n, wrong, comparisons)
		if wrong > mostFalse {
			t.Errorf("n = %d: %d of %d comparisons of a run with itself differ", n, wrong, comparisons)
		}
	}
}

// TestRealSamplesDealtOutAtRandomDoNotDiffer: testdata/lab.json has the samples of a
// recording of a lab in which a Deployment was scaled to and fro.
func TestRealSamplesDealtOutAtRandomDoNotDiffer(t *testing.T) {
	b, err := os.ReadFile("testdata/lab.json")
	if err != nil {
		t.Fatal(err)
	}
	var real map[Hop][]Sample
	if err := json.Unmarshal(b, &real); err != nil {
		t.Fatal(err)
	}
	rnd, wrong, told := rand.New(rand.NewPCG(3, 4)), 0, 0
	for range comparisons {
		a, b := Samples{map[Hop][]Sample{}, nil}, Samples{map[Hop][]Sample{}, nil}
		for _, h := range hops { // in an order that is always the same
			for _, x := range real[h] {
				if rnd.IntN(2) == 0 {
					a.Of[h] = append(a.Of[h], x)
				} else {
					b.Of[h] = append(b.Of[h], x)
				}
			}
		}
		c := Compare("a", "b", a, b)
		if differs, _ := c.Differs(); differs {
			wrong++
		}
		for _, r := range c.Hops {
			if r.Verdict != CannotTell {
				told++
			}
		}
	}
	t.Logf("%d of %d differ; %.1f hops were judged in each", wrong, comparisons, float64(told)/comparisons)
	if wrong > mostFalse || told < 5*comparisons {
		t.Errorf("%d of %d comparisons differ, %d hops were judged", wrong, comparisons, told)
	}
}

// shifted is a run in which one hop takes more.
func shifted(rnd *rand.Rand, n int, sigma float64, h Hop, by float64) Samples {
	s := run(rnd, n, sigma)
	for i := range s.Of[h] {
		s.Of[h][i].D = time.Duration(float64(s.Of[h][i].D) * by)
	}
	return s
}

// TestAFifthMoreIsFound of 100 samples that spread by a quarter (sigma 0.25), which is
// more than what nodes' rules spread by here.
func TestAFifthMoreIsFound(t *testing.T) {
	const h = Hop("add: slice to rules, each node")
	rnd, found := rand.New(rand.NewPCG(5, 6)), 0
	for range 100 {
		c := Compare("a", "b", run(rnd, 100, 0.25), shifted(rnd, 100, 0.25, h, 1.2))
		for _, r := range c.Hops {
			if r.Hop == h && r.Verdict == Longer {
				found++
			}
		}
	}
	t.Logf("found %d times of 100", found)
	if found < 90 {
		t.Errorf("found %d times of 100", found)
	}
	// And the other way round it is shorter.
	c := Compare("a", "b", shifted(rnd, 100, 0.25, h, 1.5), run(rnd, 100, 0.25))
	i := slices.IndexFunc(c.Hops, func(r Row) bool { return r.Hop == h })
	if r := c.Hops[i]; r.Verdict != Shorter || r.DifferenceMS == nil || *r.DifferenceMS > 0 {
		t.Errorf("%+v", r)
	}
}

func TestTooFewSamplesAreSaid(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 1))
	a, b := run(rnd, 3, 0.1), run(rnd, 3, 0.1)
	for h := range b.Of {
		for i := range b.Of[h] {
			b.Of[h][i].D *= 10
		}
	}
	c := Compare("a", "b", a, b)
	for _, r := range c.Hops {
		if r.Verdict != CannotTell || r.Why != "n = 3: cannot tell" {
			t.Errorf("%s: %s %q", r.Hop, r.Verdict, r.Why)
		}
	}
	if differs, told := c.Differs(); differs || told {
		t.Error("something is told")
	}
	// Those of which there are enough are judged, and share no error with the others.
	h := hops[4]
	a.Of[h], b.Of[h] = lognormal(rnd, 8, time.Second, 0.1), lognormal(rnd, 8, 3*time.Second, 0.1)
	for _, r := range Compare("a", "b", a, b).Hops {
		if (r.Verdict == Longer) != (r.Hop == h) {
			t.Errorf("%s: %s %s", r.Hop, r.Verdict, r.Why)
		}
	}
	// What only one of them has.
	delete(b.Of, hops[0])
	if r := Compare("a", "b", a, b).Hops[0]; r.Why != "nothing of it in the second" {
		t.Errorf("%+v", r)
	}
}

// TestWhatHasNotEndedCountsAsAtLeast: nodes that never arrive make it longer, and no
// number is given for them.
func TestWhatHasNotEndedCountsAsAtLeast(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 1))
	a, b := run(rnd, 30, 0.2), run(rnd, 30, 0.2)
	h := hops[5]
	for i := range b.Of[h] {
		if i%3 > 0 {
			b.Of[h][i] = Sample{D: 5 * time.Second, AtLeast: true}
		}
	}
	sorted(b.Of[h])
	c := Compare("a", "b", a, b)
	r := c.Hops[5]
	if r.Verdict != Longer || r.B.Open != 20 || !r.B.P50.AtLeast || r.B.P50.MS != 5000 || r.DifferenceMS != nil || r.A.P50.AtLeast {
		t.Errorf("%+v %+v", r, r.B.P50)
	}
	// What is younger than what ended says nothing.
	for i := range b.Of[h] {
		b.Of[h][i] = Sample{D: time.Millisecond, AtLeast: true}
	}
	if r := Compare("a", "b", a, b).Hops[5]; r.Verdict != Noise {
		t.Errorf("only young ones: %+v", r)
	}
	var text strings.Builder
	if err := c.WriteText(&text); err != nil || !strings.Contains(text.String(), "> 5.00 s") || !strings.Contains(text.String(), "B is longer (p ") {
		t.Errorf("%v\n%s", err, text.String())
	}
}

// TestADifferenceWithinTheTimesOwnErrorsIsNotClaimed however sure the samples are.
func TestADifferenceWithinTheTimesOwnErrorsIsNotClaimed(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 1))
	a, b := run(rnd, 100, 0.1), shifted(rnd, 100, 0.1, hops[0], 1.5)
	for i := range b.Of[hops[0]] {
		a.Of[hops[0]][i].Error, b.Of[hops[0]][i].Error = time.Millisecond, 30*time.Millisecond
	}
	if r := Compare("a", "b", a, b).Hops[0]; r.Verdict != WithinError || r.ErrorMS != 31 {
		t.Errorf("%+v", r)
	}
}

// TestScoresAreGehans by their definition.
func TestScoresAreGehans(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 1))
	for range 300 {
		var all []Sample
		for range 1 + rnd.IntN(12) {
			all = append(all, Sample{D: time.Duration(rnd.IntN(6)), AtLeast: rnd.IntN(3) == 0})
		}
		// less: x is surely shorter than y.
		less := func(x, y Sample) bool { return !x.AtLeast && x.D < y.D }
		sum := 0.0
		for i, got := range scores(all) {
			want := 0.0
			for _, y := range all {
				if less(y, all[i]) {
					want++
				}
				if less(all[i], y) {
					want--
				}
			}
			if got != want {
				t.Fatalf("%+v: score %d is %g, want %g", all, i, got, want)
			}
			sum += got
		}
		if sum != 0 {
			t.Fatalf("%+v: the scores add up to %g", all, sum)
		}
	}
}

// TestThePValueIsThatOfAllDeals for samples so few that all can be counted, and of the
// normal distribution for many.
func TestThePValueIsThatOfAllDeals(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 1))
	a, b := lognormal(rnd, 5, 100, 0.5), lognormal(rnd, 6, 140, 0.5)
	u := scores(append(slices.Clone(a), b...))
	seen := 0.0
	for _, x := range u[:5] {
		seen += x
	}
	far, ways := 0, 0
	for set := range 1 << 11 {
		n, sum := 0, 0.0
		for i := range 11 {
			if set>>i&1 == 1 {
				n++
				sum += u[i]
			}
		}
		if n == 5 {
			if ways++; math.Abs(sum) >= math.Abs(seen)-1e-9 {
				far++
			}
		}
	}
	exact := float64(far) / float64(ways)
	if p, _ := pValue(a, b); math.Abs(p-exact) > 0.15*exact+0.01 {
		t.Errorf("p = %g, exactly it is %g", p, exact)
	}
	if got, want := least(5, 6), 2.0/462; math.Abs(got-want) > 1e-12 {
		t.Errorf("at least %g, want %g", got, want)
	}
	a, b = lognormal(rnd, 490, 100*time.Millisecond, 0.5), lognormal(rnd, 490, 107*time.Millisecond, 0.5)
	dealt, _ := pValue(a, b)
	more := lognormal(rnd, 30, 100*time.Millisecond, 0.5)
	if normal, _ := pValue(append(more, a...), b); math.Abs(normal-dealt) > 0.1 {
		t.Errorf("by the normal distribution p = %g, by deals %g", normal, dealt)
	}
	if p, _ := pValue(a, a); p < 0.99 {
		t.Errorf("the same samples: p = %g", p)
	}
}

func TestHolmsCorrection(t *testing.T) {
	got := holm([]float64{0.01, 0.04, 0.03, 0.005})
	for i, want := range []float64{0.03, 0.06, 0.06, 0.02} {
		if math.Abs(got[i]-want) > 1e-12 {
			t.Errorf("%v", got)
		}
	}
}
