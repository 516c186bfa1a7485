// Package mutations shows that the tests of engine/timeline can fail: with each of
// the small changes in mutations.txtar the model would be wrong, and its ordinary
// tests have to say so. There is nothing here but the test, mutations_test.go.
//
// Whoever changes the model takes the old texts along; one that is not found exactly
// once is an error that names the mutation.
package mutations
