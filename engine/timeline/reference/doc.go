// Package reference is a second, slow opinion on what events mean. The tests of
// engine/timeline hold the model against it.
//
// It knows neither the model nor engine/desired and imports collect alone. It
// remembers nothing that it could work out: each moment is told anew from all
// events up to it, and what needs a past (since when something differs, steps,
// arrivals) is read off the list of moments. What Kubernetes does is written
// down once more here, from the same sources as in engine/desired:
//
//	wanted.go   the EndpointSlice, Endpoints and mirroring controllers
//	proxy.go    kube-proxy
//	facts.go    what the events have told
//	planes.go   had and wanted of each plane, and how they differ
//	trust.go    coverage, watermark
//	hops.go     steps and what became of them
//	paths.go    which root is behind a step
//
// Events have to be given in the order in which they came about: no reordering
// happens here. There are no budgets, retention, claimed times or risks.
package reference
