// Package consumers has the tests that hand exports to the programs and libraries that
// read them: Chromium, OpenTelemetry's pdata, speedscope, asciinema. It is a module of its own, so
// that the program's does not need what only these tests do.
package consumers
