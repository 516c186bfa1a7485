package collect

// Narration is what a script tells whoever watches.
type Narration struct {
	// Scenario is the script's name, Chapter that of the part that begins or goes on;
	// empty without chapters.
	Scenario string `json:"scenario,omitempty"`
	Chapter  string `json:"chapter,omitempty"`
	Text     string `json:"text,omitempty"`
	// Waiting: the script goes on, with the chapter Next, when it is told to. Text is
	// then what it told last.
	Waiting bool   `json:"waiting,omitempty"`
	Next    string `json:"next,omitempty"`
	// Ended: there is nothing more to tell.
	Ended bool `json:"ended,omitempty"`
	// Verdict is set for the outcome of an expectation: "met" or "not met".
	Verdict string `json:"verdict,omitempty"`
}

// Type implements Payload.
func (*Narration) Type() string { return "narration" }
