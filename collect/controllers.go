package collect

import "time"

// ControllerState is how the embedded controllers are set. It is said when they begin,
// when something is changed, and at each resync.
type ControllerState struct {
	// Workers is how many each controller has.
	Workers int `json:"workers"`
	// Resync is how often every Service is looked at again, whatever happens.
	Resync time.Duration `json:"resync"`
	// NextResync is when that is due.
	NextResync time.Time `json:"nextResync"`
}

// Type implements Payload.
func (*ControllerState) Type() string { return "controllers" }
