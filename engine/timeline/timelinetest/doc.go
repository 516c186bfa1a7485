// Package timelinetest reads the scenarios of testdata/scenarios: events in the form
// that their README tells, and the parts that say what must come of them. The tests
// of the pure packages play them.
//
// It may import collect and golang.org/x/tools/txtar. Start with New and Parse.
package timelinetest
