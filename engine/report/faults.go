package report

import (
	"time"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/engine/timeline"
)

// Fault is an interval in which a fault of the lab was in force.
type Fault struct {
	Name   string `json:"name"`
	Amount string `json:"amount"`
	// Target is what it was limited to; empty for no limit.
	Target string     `json:"target,omitempty"`
	By     string     `json:"by,omitempty"`
	From   time.Time  `json:"from"`
	To     *time.Time `json:"to"` // null while it is in force
}

func faults(s *timeline.Snapshot) (out []Fault) {
	for _, f := range s.Faults {
		out = append(out, Fault{Name: f.Name, Amount: f.Amount, Target: f.Target, By: f.By, From: f.From.UTC(), To: timeOrNil(f.To)})
	}
	return out
}

// faults prints a line for each.
func (p *printer) faults(list []Fault) {
	if len(list) > 0 {
		p.line("")
	}
	for _, f := range list {
		to, text := "in force", collect.Plain(f.Name+" "+f.Amount)
		if f.To != nil {
			to = "to " + p.clock(*f.To)
		}
		if f.Target != "" {
			text += " " + collect.Plain(f.Target)
		}
		p.line("fault  %s  from %s %s", text, p.clock(f.From), to)
	}
}
