package collect

import "time"

// Fault tells that a fault of the lab began or ended, or that one was asked for that
// cannot be. Name and Target together name it until it has ended.
type Fault struct {
	Name   string `json:"name,omitempty"`
	Amount string `json:"amount,omitempty"`
	// Target is what it is limited to; empty for no limit.
	Target string `json:"target,omitempty"`
	Ended  bool   `json:"ended,omitempty"`
	// Since is when it began, where the event says again what stands.
	Since time.Time `json:"since,omitzero"`
	// Refused is why a fault was not set; nothing else is given then.
	Refused string `json:"refused,omitempty"`
	By      string `json:"by,omitempty"`
}

// Type implements Payload.
func (*Fault) Type() string { return "fault" }

// Text is how people write it: "sync-delay 5s node-2".
func (f *Fault) Text() string {
	s := f.Name + " " + f.Amount
	if f.Target != "" {
		s += " " + f.Target
	}
	return s
}
