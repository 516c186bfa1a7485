package anonymise

import (
	"errors"
	"io"
	"os"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/collect/recording"
)

// Writer writes what it is given to a recording, anonymised as it comes. What a later
// event calls a name is not known yet: a text keeps it if it is one of kconverge's own
// words. Replacements do not sort as the names do. It belongs to one goroutine.
type Writer struct {
	a *Anonymiser
	w *recording.Writer
}

// NewWriter returns one that writes to w.
func NewWriter(w *recording.Writer) *Writer { return &Writer{New(), w} }

// Write implements engine/live's Recorder.
func (w *Writer) Write(e collect.Event) error { return w.w.Write(w.a.Event(e)) }

// Recording writes a recording anew, anonymised, to a file that must not exist yet. It
// reads everything twice, so that what Learn promises holds. lost are the parts that
// cannot be read, which are gaps in what is written. When it fails no file is left.
func Recording(in *recording.File, path string, o recording.Options) (lost int, err error) {
	a := New()
	if _, err := each(in, func(e collect.Event) error { a.Learn(e); return nil }); err != nil {
		return 0, err
	}
	a.Learnt()
	w, err := recording.Create(path, o)
	if err != nil {
		return 0, err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(path)
		}
	}()
	lost, err = each(in, func(e collect.Event) error { return w.Write(a.Event(e)) })
	return lost, errors.Join(err, w.Close())
}

// each goes through the events, and gives how many parts could not be read.
func each(in *recording.File, do func(collect.Event) error) (lost int, err error) {
	r := in.Read(0)
	for {
		e, err := r.Next()
		if errors.Is(err, io.EOF) {
			return r.Damaged, nil
		}
		if err == nil {
			err = do(e)
		}
		if err != nil {
			return r.Damaged, err
		}
	}
}
