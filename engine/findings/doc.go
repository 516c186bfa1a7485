// Package findings recognises what is wrong or risky in a cluster from what the
// timeline knows: a Service that selects nothing, a node whose rules stopped
// following, a preStop that is too short. Each has a stable code, which Explain
// tells about.
//
// A false finding is worse than a missing one. What is not known is not claimed: a
// rule asks whether its sources have told everything (told), how far they have
// (heard), and takes an age only up to there; and what just changed gets the time to
// settle. What a first list brings may have been so for long, so that its own claimed
// times count.
//
// It is pure: collect, timeline and the texts of lanes, no clock. The Severity of a
// code is fixed. Texts are plain (collect.Plain), and what a person may paste into a
// shell is quoted.
//
// Start with findings.go and codes.go. A file for each group of codes follows: pods.go,
// selection.go, slices.go, rules.go, proxy.go, local.go, seen.go, changes.go,
// design.go. testdata/scenarios/finding-*.txtar shows each at work, with near misses.
package findings
