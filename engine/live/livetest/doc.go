// Package livetest makes long sessions of a made-up cluster, for what measures
// recordings of millions of events. It is of tests only.
package livetest
