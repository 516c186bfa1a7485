// Package pki makes the certificates and keys of one lab: an authority that exists
// only in this process, and what it signs.
//
// It imports the standard library only. Everything is in pki.go.
package pki
