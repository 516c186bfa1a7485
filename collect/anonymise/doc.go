// Package anonymise takes out of events what tells whose cluster they are of, and
// leaves what tells how it converged.
//
// Replaced, each by the same word wherever it stands and different ones by different
// words: names of all objects, namespaces and nodes, label keys that are not well
// known, all label values, UIDs, names of ports and zones, addresses, what is watched
// and with what, and in texts every word that is not one of kconverge's own. Messages
// of Kubernetes Events are left out but for the words that say what kind of probe
// failed. Addresses keep their family, their range (private, loopback and so on) and
// how many leading bits they share; the key for that is random and never written.
//
// Kept: times, counts, port numbers, versions, the kinds and conditions of
// Kubernetes, well-known label keys.
//
// What becomes of each string of a payload is decided in fields.go, by name; a field
// without a decision is replaced as a whole, and a test refuses it.
//
// It may import collect and collect/recording. Start with anonymiser.go.
package anonymise
