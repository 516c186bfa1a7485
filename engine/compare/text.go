package compare

import (
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"
	"time"
)

func tooFew(a, b int) string {
	switch {
	case a == 0:
		return "nothing of it in the first"
	case b == 0:
		return "nothing of it in the second"
	case a == b:
		return fmt.Sprintf("n = %d: cannot tell", a)
	}
	return fmt.Sprintf("n = %d and %d: cannot tell", a, b)
}

// WriteText writes the comparison for people.
func (c *Comparison) WriteText(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "A  %s\nB  %s\n", c.A, c.B)
	if len(c.Hops) == 0 {
		b.WriteString("\nneither has a change in it\n")
		_, err := io.WriteString(w, b.String())
		return err
	}
	b.WriteString("\n")
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "hop\tn A\tn B\tp50 A\tp50 B\tp90 A\tp90 B\tB - A\t")
	for _, r := range c.Hops {
		fmt.Fprintf(t, "%s\t%d\t%d\t%s\t%s\t%s\t%s\t%s\t%s\n", r.Hop, r.A.N, r.B.N,
			amount(r.A.P50), amount(r.B.P50), high(r.A), high(r.B), r.difference(), r.says())
	}
	if err := t.Flush(); err != nil {
		return err
	}
	b.WriteString("\nA write of a slice, and a sync of a node, counts once. ^ is the worst of fewer than 20,\n" +
		"> has not ended yet and is at least that. More than noise: of recordings that do not\n" +
		"differ at most one comparison in fifty says so of any hop (permutation test of Gehan's\n" +
		"scores, corrected by Holm's method).\n")
	_, err := io.WriteString(w, b.String())
	return err
}

func (r *Row) difference() string {
	if r.DifferenceMS == nil {
		return ""
	}
	sign := "+"
	if *r.DifferenceMS < 0 {
		sign = "-"
	}
	s := sign + length(math.Abs(*r.DifferenceMS))
	if r.Ratio != nil {
		s += fmt.Sprintf(" (%+.0f %%)", (*r.Ratio-1)*100)
	}
	return s
}

// says is the verdict in words.
func (r *Row) says() string {
	left := ""
	if n := r.A.LeftOut + r.B.LeftOut; n > 0 {
		left = fmt.Sprintf("; %d taken back or with nothing to do", n)
	}
	p := ""
	if r.P != nil {
		p = fmt.Sprintf(" (p %s)", probability(*r.P))
	}
	switch r.Verdict {
	case Longer, Shorter:
		return "B is " + string(r.Verdict) + p + left
	case Noise:
		return "no more than noise" + p + left
	case WithinError:
		return "within the error of " + length(r.ErrorMS) + p + left
	}
	return r.Why + left
}

func probability(p float64) string {
	if p < 0.001 {
		return "< 0.001"
	}
	return fmt.Sprintf("%.3f", p)
}

func amount(q *Quantile) string {
	switch {
	case q == nil:
		return "-"
	case q.AtLeast:
		return "> " + length(q.MS)
	}
	return length(q.MS)
}

// high is the ninetieth percentile, or the worst of few.
func high(s Side) string {
	if s.P90 != nil || s.N == 0 {
		return amount(s.P90)
	}
	return amount(s.Worst) + "^"
}

// length is a duration with three digits.
func length(ms float64) string {
	d := time.Duration(ms * float64(time.Millisecond))
	switch {
	case d < 100*time.Millisecond:
		return fmt.Sprintf("%.1f ms", ms)
	case d < time.Second:
		return fmt.Sprintf("%.0f ms", ms)
	case d < 100*time.Second:
		return fmt.Sprintf("%.2f s", d.Seconds())
	}
	return d.Round(time.Second).String()
}
