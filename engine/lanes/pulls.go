package lanes

import (
	"strconv"
	"time"

	"github.com/kconverge/kconverge/engine/timeline"
)

// pull tells of the images that were pulled while the containers of a hop started. The
// kubelet measures them itself, so that no clock of another machine is in it; it pulls one
// after the other unless it is told otherwise, and then they may overlap.
func (b *Bar) pull(list []timeline.Pull) {
	what := map[string]string{"started": "start", "initialised": "run"}[b.Label]
	if what == "" {
		return
	}
	var sum, longest time.Duration
	n := 0
	for _, p := range list {
		if p.Init == (b.Label == "initialised") {
			sum, longest, n = sum+p.Took, max(longest, p.Took), n+1
		}
	}
	if n == 0 {
		return
	}
	if sum > b.Took { // they overlapped
		sum = longest
	}
	b.Pulls, b.Pulled = n, min(sum, b.Took)
	b.Note = "pull " + Duration(sum)
	if n > 1 {
		b.Note = Plural(n, "pull") + " " + Duration(sum)
	}
	if sum <= b.Took {
		b.Note += ", " + what + " " + Duration(b.Took-sum)
	}
}

// pulling says how much of a hop's time pulls took, where that is most of it: the share
// that is told of the hop is of all its time.
func (b *Bar) pulling() string {
	switch {
	case b.Pulls == 0 || b.Pulled <= b.Took/2:
		return ""
	case b.Pulls == 1:
		return " (" + Duration(b.Pulled) + " pulling an image)"
	}
	return " (" + Duration(b.Pulled) + " pulling " + strconv.Itoa(b.Pulls) + " images)"
}
