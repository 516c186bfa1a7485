// Package scenario plays scripted stories in the lab and judges what became of them.
//
// A scenario is a YAML file (file.go): steps that a person could take with kubectl,
// faults, waits, narration, and expectations about what kconverge reports in the end.
// Those that come with the program are in scenarios/, embedded; people write their
// own in the same form.
//
// The steps marked as the cause can be left out (Options.Control). A scenario whose
// expectations hold then as well shows nothing; the tests run both.
//
// It stands above engine/lab and engine/live, and may import these, engine/report,
// engine/timeline, collect, client-go and YAML. It never reads what it judges from
// anywhere but the snapshots that everybody sees, and never sleeps: it waits for the
// model's time or for conditions on it.
//
// Start with file.go (what a file holds), run.go (how it is played), check.go (what
// can be expected) and judge.go (how that is judged); kubectl.go has the actions.
package scenario
