package collect

import "time"

// RulesPast is what a node's agent told about its rules before the viewer came:
// how many endpoints each Service was routed to, and since when.
//
// It is a payload of its own, and not Rules with a mark, because it is no
// observation in its place: its moments lie before events that were emitted
// already, so that nothing may be computed from them but a picture of the past.
// Whoever handles Rules cannot take it for a generation. And it says less, per
// Service and not per Service port, because that is what can be drawn and what
// cannot be added up again from ports (two ports route to the same endpoints).
//
// A later one for the same node takes the place of the one before: the node's
// clock is known better then. Its times are on the viewer's clock.
type RulesPast struct {
	Node string `json:"node"`
	// From is since when everything is told, but for Gaps, up to the Rules that
	// are the viewer's baseline.
	From time.Time `json:"from"`
	// FromError is how far From may be off, either way.
	FromError time.Duration `json:"fromError,omitempty"`
	// OneSided: the node's clock is only bounded from one side, so that all
	// times are the latest possible ones, give or take their errors.
	OneSided bool `json:"oneSided,omitempty"`
	// Changes are by time. Of a Service that changed, the first says what it
	// had at From; a Service without any has been what it is in the baseline.
	Changes []PastChange `json:"changes,omitempty"`
	// Gaps are where a part of the log, or of what the agent saw, is missing, by
	// their start: what changed in one is told as of its end. They are told as
	// events of the source, too; these have the times that go with Changes.
	Gaps []Gap `json:"gaps,omitempty"`
	// Dropped counts changes that were too many or too long ago to be kept:
	// From lies after them.
	Dropped int `json:"dropped,omitempty"`
}

// PastChange is one change of the rules for one Service.
type PastChange struct {
	At time.Time `json:"at"`
	// NotBefore, when set, says that it is only known to lie in [NotBefore, At].
	NotBefore time.Time `json:"notBefore,omitzero"`
	// Error is how far At may be off, either way: what the bound of the node's
	// clock says now, and how far the clocks may have drifted apart since.
	Error      time.Duration `json:"error,omitempty"`
	Generation uint32        `json:"generation,omitempty"`
	Namespace  string        `json:"ns"`
	Service    string        `json:"svc"`
	// Endpoints is how many addresses any of the Service's ports led to from
	// then on.
	Endpoints int `json:"n"`
}

// Type implements Payload.
func (*RulesPast) Type() string { return "rulespast" }
