// Package compare sets the hops of two recordings side by side: how long each took in
// the one and in the other, and whether the difference is more than noise.
//
// # What is one sample
//
// What one program did at one go counts once, however many endpoints it moved: of the
// arrivals that one write of a slice, or one sync of a node, brought about, the longest.
// So n is the number of writes and syncs, not of endpoints. A pod's own hops (created,
// scheduled, started, ready) count once a pod. Only what was observed at both its ends
// counts, never what an object claims.
//
// A hop that has not arrived is at least as long as its age. One that was taken back,
// or had nothing to do, is left out, and said.
//
// # When is it more than noise
//
// By a permutation test of Gehan's scores (Gehan, Biometrika 52, 1965; the Mann-Whitney
// test where everything has arrived): each sample's score is how many of all others are
// surely shorter less how many are surely longer, and the p value is how often samples
// that are dealt out to the two sides at random have a sum of scores as far from zero.
// The p values of all hops together are corrected by Holm's method (Scandinavian
// Journal of Statistics 6, 1979): of recordings that do not differ, at most one
// comparison in fifty says of any hop that it does.
//
// That holds for samples that do not depend on each other. Two runs also differ by
// what else their machines did: the test speaks of the runs, not of what caused it.
//
// A difference of the medians that is within what the times may be off by is not
// claimed, however surely the samples differ; nor is one between so few samples that
// no outcome could be sure.
//
// It is pure: it reads no clock and imports engine/timeline and the standard library.
// Start with compare.go; samples.go says what is measured, test.go how it is judged.
package compare
