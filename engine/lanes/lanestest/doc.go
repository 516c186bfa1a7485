// Package lanestest builds timeline Snapshots for tests of what is drawn from
// them: a small Service whose changes and lags are given, with every plane's
// history, paths and episodes derived from those by the definitions of
// engine/timeline. It is for tests only.
package lanestest
