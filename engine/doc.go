// Package engine holds nothing itself; its folders are what kconverge knows and
// does beyond collecting:
//
//	desired    what ought to be (pure)
//	timeline   events -> planes, steps, paths, coverage (pure)
//	lanes      timeline -> what to draw (pure)
//	report     timeline -> the report document and text (pure)
//	export     report and lanes -> the formats of other programs (pure)
//	live       the running program: sources in, snapshots out
//	reconcile  the embedded EndpointSlice and Endpoints controllers
//	rulesync   the embedded kube-proxy
//	lab        a whole small cluster in this process
//
// Arrows point one way: cmd -> ui -> lanes, timeline -> desired -> collect.
// arrows_test.go keeps them.
package engine
