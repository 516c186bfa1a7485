package compare

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"sort"
)

const (
	// alpha is how often recordings that do not differ are said to, at most.
	alpha = 0.02
	// deals is how many times samples are dealt out at random; above exactUpTo
	// samples the normal distribution stands for them.
	deals     = 99_999
	exactUpTo = 1_000
	// enough deals that are as far apart end the dealing early: p is then how many
	// of those so far were (Besag and Clifford, Biometrika 78, 1991).
	enough = 100
)

// scores are Gehan's: how many of the others are surely shorter less how many are
// surely longer. They add up to zero.
func scores(all []Sample) []float64 {
	var ended, open []float64
	for _, x := range all {
		if x.AtLeast {
			open = append(open, float64(x.D))
		} else {
			ended = append(ended, float64(x.D))
		}
	}
	slices.Sort(ended)
	slices.Sort(open)
	below := func(list []float64, v float64) int { return sort.SearchFloat64s(list, v) }
	above := func(list []float64, v float64) int {
		return len(list) - sort.Search(len(list), func(i int) bool { return list[i] > v })
	}
	out := make([]float64, len(all))
	for i, x := range all {
		out[i] = float64(below(ended, float64(x.D)))
		if !x.AtLeast {
			out[i] -= float64(above(ended, float64(x.D)) + above(open, float64(x.D)))
		}
	}
	return out
}

// pValue is how often two sides that do not differ have scores as far apart as a and b,
// and the sum of a's: positive when a is longer. It is the same for the same samples.
func pValue(a, b []Sample) (p, sum float64) {
	all := append(slices.Clone(a), b...)
	u := scores(all)
	for _, x := range u[:len(a)] {
		sum += x
	}
	n := len(all)
	if n > exactUpTo {
		squares := 0.0
		for _, x := range u {
			squares += x * x
		}
		sd := math.Sqrt(float64(len(a)) * float64(len(b)) * squares / float64(n) / float64(n-1))
		if sd == 0 {
			return 1, sum
		}
		return math.Erfc(math.Abs(sum) / sd / math.Sqrt2), sum
	}
	rnd := rand.New(rand.NewPCG(uint64(len(a)), uint64(len(b)))) // the same deals each time
	few := min(len(a), len(b))
	as := 1 // what was seen is one of the possible deals
	for n1 := range deals {
		dealt := 0.0
		for i := range few {
			j := i + rnd.IntN(n-i)
			u[i], u[j] = u[j], u[i]
			dealt += u[i]
		}
		if math.Abs(dealt) >= math.Abs(sum)-1e-9 {
			if as++; as > enough {
				return float64(as-1) / float64(n1+1), sum
			}
		}
	}
	return float64(as) / float64(deals+1), sum
}

// least is the smallest p value that so many samples could have: with both sides apart
// altogether.
func least(n, m int) float64 {
	ways := 1.0
	for i := 1; i <= min(n, m); i++ {
		ways *= float64(n+m-min(n, m)+i) / float64(i)
	}
	return max(2/ways, 1.0/(deals+1))
}

// holm corrects p values for there being several.
func holm(p []float64) []float64 {
	order := make([]int, len(p))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int { return cmp.Compare(p[i], p[j]) })
	out := make([]float64, len(p))
	most := 0.0
	for rank, i := range order {
		most = max(most, min(1, p[i]*float64(len(p)-rank)))
		out[i] = most
	}
	return out
}
