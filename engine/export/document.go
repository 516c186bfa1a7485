package export

import (
	"errors"
	"time"

	"github.com/kconverge/kconverge/engine/report"
	"github.com/kconverge/kconverge/engine/timeline"
)

// Options say what part of a Snapshot a Document is of.
type Options struct {
	// Keep chooses the Services; nil keeps all.
	Keep func(*timeline.Service) bool
	// From and To limit it to what touches that time; zero sets no limit.
	From, To time.Time
	// Location is the time zone of times that people read; nil means UTC.
	Location *time.Location
	// Tool is this program and its version, for formats that name their maker.
	Tool string
}

// Document is what is exported. It is not changed by writing it.
type Document struct {
	Snapshot *timeline.Snapshot
	Report   *report.Report
	Location *time.Location
	Tool     string
}

// ErrNothing is the error of a Snapshot from which nothing can be made.
var ErrNothing = errors.New("nothing was observed")

// New makes the Document of a Snapshot.
func New(s *timeline.Snapshot, o Options) (*Document, error) {
	if s == nil || s.First.IsZero() {
		return nil, ErrNothing
	}
	if o.Location == nil {
		o.Location = time.UTC
	}
	return &Document{Snapshot: s, Report: report.BuildBetween(s, o.Keep, o.From, o.To), Location: o.Location, Tool: o.Tool}, nil
}

// From and To are the time that the Document is of.
func (d *Document) From() time.Time { return d.Report.Window.From }

// To is the end of that time.
func (d *Document) To() time.Time { return d.Report.Window.To }

// service is the timeline's side of a Service of the report.
func (d *Document) service(v *report.Service) *timeline.Service {
	return d.Snapshot.Service(v.Namespace, v.Name)
}

// end is when a path ended, or as far as is known of it.
func (d *Document) end(p *report.Path) time.Time {
	switch {
	case p.Status == string(timeline.StatusOpen):
		return later(p.Origin.At, d.Snapshot.Now)
	case p.End.IsZero():
		return p.Origin.At
	}
	return p.End
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
