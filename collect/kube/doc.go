// Package kube watches a Kubernetes API server and turns what it delivers into
// collect events. It holds the one converter from API objects to payloads.
//
// It may import client-go and collect, and nothing of engine or ui.
//
// Start with source.go (what is watched and how it is run), then store.go (how
// lists and watch events become events); convert.go has the converters,
// check.go how a source proves that nothing is missing.
package kube
