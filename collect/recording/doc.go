// Package recording keeps sessions in files: a writer that can be handed to
// engine/live, and a collect.Source that plays a file back. A file holds the
// event codec's JSON lines, so that ordinary text tools can read it.
package recording
