// Package export writes what kconverge knows in the formats that other people and
// programs read. Every one is made from the same Document: the report of a Snapshot and
// its lanes, so that none tells another truth.
//
//	json   the kconverge.report/v1 document
//	csv    one row for each path and node
//	md     Markdown, to be pasted into an issue
//	html   one page with everything in it, that needs no network
//	trace  Chrome's trace events, for Perfetto and speedscope
//	otlp   OpenTelemetry spans, a TracesData object in each line
//
// Pictures of cells (svg, png, cast) are in ui/frame and ui/cast, which draw them.
//
// It is pure: it reads no clock and no file. It may import collect, timeline, lanes and
// report. Names and texts come from a cluster and are untrusted: each format escapes
// them in its own way.
//
// Start with document.go, then the file of a format.
package export
