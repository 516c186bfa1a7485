package compare

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// Schema names the version of the document.
const Schema = "kconverge.diff/v1"

// Verdict is what is said of one hop.
type Verdict string

const (
	Longer  Verdict = "longer"  // in B, more than noise
	Shorter Verdict = "shorter" // in B, more than noise
	Noise   Verdict = "noise"   // no more than that
	// WithinError: the samples differ surely, and their medians by no more than
	// their times may be off.
	WithinError Verdict = "within-error"
	CannotTell  Verdict = "cannot-tell" // too few
)

// Comparison is the kconverge.diff/v1 document. Durations are milliseconds; null means
// not known.
type Comparison struct {
	Schema string `json:"schema"`
	A      string `json:"a"`
	B      string `json:"b"`
	// Method and ErrorRate say how the verdicts are come by.
	Method    string  `json:"method"`
	ErrorRate float64 `json:"error_rate"`
	Hops      []Row   `json:"hops"`
}

// Row is one hop in both recordings.
type Row struct {
	Hop Hop  `json:"hop"`
	A   Side `json:"a"`
	B   Side `json:"b"`
	// DifferenceMS is B's median less A's; Ratio is B's by A's. ErrorMS is how far
	// the difference may be off.
	DifferenceMS *float64 `json:"difference_ms"`
	Ratio        *float64 `json:"ratio"`
	ErrorMS      float64  `json:"error_ms"`
	// P is the p value, corrected for all hops; null without one.
	P       *float64 `json:"p"`
	Verdict Verdict  `json:"verdict"`
	// Why tells what keeps a CannotTell from being told.
	Why string `json:"why,omitempty"`
}

// Side is one recording's samples.
type Side struct {
	N       int `json:"n"`
	Open    int `json:"open"`     // of N, not ended
	LeftOut int `json:"left_out"` // taken back, or nothing to do; not of N

	P50     *Quantile `json:"p50"` // null without samples
	P90     *Quantile `json:"p90"` // from 20 samples on
	Worst   *Quantile `json:"worst"`
	errorMS float64
}

// Quantile is by nearest rank. AtLeast says that what has not ended may make it more.
type Quantile struct {
	MS      float64 `json:"ms"`
	AtLeast bool    `json:"at_least,omitempty"`
}

// minP90 is from how many samples on a ninetieth percentile is more than the worst.
const minP90 = 20

const method = "permutation test of Gehan's scores, two-sided, corrected for all hops by Holm's method; what has not ended counts as at least its age"

// Compare judges two sets of samples, of recordings with these names.
func Compare(nameA, nameB string, a, b Samples) *Comparison {
	out := &Comparison{Schema: Schema, A: nameA, B: nameB, Method: method, ErrorRate: alpha, Hops: []Row{}}
	for _, h := range hops {
		if len(a.Of[h])+len(b.Of[h]) > 0 {
			out.Hops = append(out.Hops, row(h, a, b))
		}
	}
	out.judge(a, b)
	return out
}

func row(h Hop, a, b Samples) Row {
	r := Row{Hop: h, A: side(a.Of[h], a.LeftOut[h]), B: side(b.Of[h], b.LeftOut[h]), Verdict: CannotTell}
	r.ErrorMS = r.A.errorMS + r.B.errorMS
	if p, q := r.A.P50, r.B.P50; p != nil && q != nil && !p.AtLeast && !q.AtLeast {
		d := q.MS - p.MS
		r.DifferenceMS = &d
		if p.MS > 0 {
			q := q.MS / p.MS
			r.Ratio = &q
		}
	}
	return r
}

// judge fills in the verdicts.
func (c *Comparison) judge(a, b Samples) {
	var tested []int
	for i := range c.Hops {
		if r := &c.Hops[i]; r.A.N > 0 && r.B.N > 0 {
			tested = append(tested, i)
		}
	}
	// A hop that could not be sure whatever it were is none of those among which
	// the error is shared.
	for len(tested) > 0 {
		most := slices.MaxFunc(tested, func(i, j int) int { return cmp.Compare(c.least(i), c.least(j)) })
		if c.least(most)*float64(len(tested)) <= alpha {
			break
		}
		tested = slices.DeleteFunc(tested, func(i int) bool { return i == most })
	}
	p, sums := make([]float64, len(tested)), make([]float64, len(tested))
	for k, i := range tested {
		p[k], sums[k] = pValue(b.Of[c.Hops[i].Hop], a.Of[c.Hops[i].Hop])
	}
	for k, corrected := range holm(p) {
		r := &c.Hops[tested[k]]
		r.P = &corrected
		switch {
		case corrected > alpha:
			r.Verdict = Noise
		case r.DifferenceMS != nil && math.Abs(*r.DifferenceMS) <= r.ErrorMS:
			r.Verdict = WithinError
		case sums[k] > 0:
			r.Verdict = Longer
		default:
			r.Verdict = Shorter
		}
	}
	for i := range c.Hops {
		if r := &c.Hops[i]; r.Verdict == CannotTell {
			r.Why = tooFew(r.A.N, r.B.N)
		}
	}
}

func (c *Comparison) least(i int) float64 { return least(c.Hops[i].A.N, c.Hops[i].B.N) }

// Differs tells that a hop is longer or shorter by more than noise; told that
// something could be said of any hop.
func (c *Comparison) Differs() (differs, told bool) {
	for _, r := range c.Hops {
		differs = differs || r.Verdict == Longer || r.Verdict == Shorter
		told = told || r.Verdict != CannotTell
	}
	return differs, told
}

// side sums samples up.
func side(list []Sample, leftOut int) Side {
	s := Side{N: len(list), LeftOut: leftOut}
	if len(list) == 0 {
		return s
	}
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b Sample) int { return cmp.Compare(a.Error, b.Error) })
	s.errorMS = ms(list[(len(list)-1)/2].Error)
	slices.SortStableFunc(list, func(a, b Sample) int { return cmp.Compare(a.D, b.D) })
	for _, x := range list {
		if x.AtLeast {
			s.Open++
		}
	}
	s.P50, s.Worst = quantile(list, 0.5), quantile(list, 1)
	if s.N >= minP90 {
		s.P90 = quantile(list, 0.9)
	}
	return s
}

// quantile takes one of samples that are sorted by length. One that has not ended
// counts with its age; it may be longer, and every quantile from there on with it.
func quantile(list []Sample, q float64) *Quantile {
	rank := max(int(math.Ceil(q*float64(len(list))))-1, 0)
	v := list[rank].D
	open := slices.ContainsFunc(list, func(x Sample) bool { return x.AtLeast && x.D <= v })
	return &Quantile{ms(v), open}
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
