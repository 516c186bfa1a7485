// Package recording keeps sessions in files: a Writer that can be handed to
// engine/live, a File that finds its way in a recording, and a Player, the
// collect.Source that plays one.
//
// # The file, kconverge.recording/v1
//
// Zstandard frames of the event codec's JSON lines, the session's first, so that
// `zstdcat FILE | jq` works. While it is written a frame is closed every second and
// handed to the operating system in one piece: a killed program loses the last
// second at most.
//
//	┌─────────┬─────────┬───┬────────────┬───┬───────┬────────────┐
//	│ frame   │ frame   │ … │ checkpoint │ … │ index │ seek table │
//	└─────────┴─────────┴───┴────────────┴───┴───────┴────────────┘
//	 while it is written      added by Close
//
// Close writes it anew, in larger frames: after them checkpoints of whoever keeps a
// model of the events, each in a skippable frame, an index of both (times, event
// numbers, places), and the seek table of the Zstandard seekable format. Of nine
// checkpoints one is whole; the others tell what became of the one before (delta.go). A file
// without those is one whose program was killed; Open finds its frames by their
// headers. A frame that is damaged costs its own events, which is told as a gap of
// every source.
//
// Files of plain JSON lines, as versions before wrote them, and those decompressed by
// zstdcat, are recordings too.
//
// It may import collect and a Zstandard library. Start with writer.go and file.go.
package recording
