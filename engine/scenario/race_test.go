//go:build race

package scenario_test

const underRace = true
