package report

import (
	"io"

	"github.com/kconverge/kconverge/collect"
)

// WritePath prints one path as WriteText does: what happened to whom, and its waterfall.
func (r *Report) WritePath(w io.Writer, x *Path, o TextOptions) error {
	p := newPrinter(w, o, r)
	p.path(x)
	return p.err
}

// WriteWindows prints what the episodes of a Service cost and what would have helped, as
// WriteText does; nothing when there is nothing to tell.
func (r *Report) WriteWindows(w io.Writer, s *Service, o TextOptions) error {
	p := newPrinter(w, o, r)
	p.windows(s)
	return p.err
}

// WriteService prints the line of a Service's planes and what is not seen of it, without
// its paths.
func (r *Report) WriteService(w io.Writer, s *Service, o TextOptions) error {
	bare := *s
	bare.Paths, bare.Episodes, bare.Advice = nil, nil, nil
	p := newPrinter(w, o, r)
	p.service(&bare)
	return p.err
}

// Dur writes milliseconds for people, as the text report does.
func Dur(ms float64) string { return dur(ms) }

// AtMost reports that some arrival of a path is only known to lie before its time, so that
// its end is the most that it can be.
func (x *Path) AtMost() bool { return x.atMost() }

// ErrorMS is the largest error of a path's arrivals, in milliseconds.
func (x *Path) ErrorMS() float64 { return x.errorMS() }

// PathName is what a path did to whom: "+ web-7d9c-x7k2p", with its family where that is
// IPv6, as lanes.PathName has it.
func PathName(x *Path) string {
	who := x.Endpoint.Pod
	switch {
	case who == "" && x.Endpoint.IP == "":
		who = "frontends"
	case who == "":
		who = x.Endpoint.IP
	case x.Endpoint.Family == string(collect.IPv6):
		who += " IPv6"
	}
	sign, ok := map[string]string{"add": "+", "remove": "−"}[x.Op]
	if !ok {
		sign = "~"
	}
	return sign + " " + who
}
