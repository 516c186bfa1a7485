package recording

import (
	"fmt"
	"os"
)

// Reindexed gives the recording with an index and the checkpoints that the options ask for: for one
// whose program was killed, of plain lines, or whose checkpoints are of another version
// of the program. It reads everything once and keeps what it makes in the temporary
// directory, in a file that nobody else sees and that is gone with the program. r stays
// as it is.
func (r *File) Reindexed(o Options) (*File, error) {
	out, err := os.CreateTemp("", ".kconverge-*")
	if err != nil {
		return nil, fmt.Errorf("recording %s: an index: %w", r.path, err)
	}
	_ = os.Remove(out.Name())
	again := &File{path: r.path, f: out}
	c, err := newCompaction(out, o)
	if err == nil {
		err = c.run(r)
	}
	if err == nil {
		err = again.open()
	}
	if err != nil {
		_ = again.Close()
		return nil, fmt.Errorf("recording %s: an index: %w", r.path, err)
	}
	again.Cut, again.Lost, again.Size = r.Cut, r.Lost, r.Size
	again.Session = r.Session
	return again, nil
}
