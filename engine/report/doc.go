// Package report is what kconverge hands over: the kconverge.report/v1 document
// and the text waterfall of every path, both built from one immutable
// timeline.Snapshot. It is pure: it reads no clock and imports no client.
//
// Start with types.go (the schema), then build.go; text.go and waterfall.go print
// for people.
package report
