package faults

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/endpoints/responsewriter"
)

// maxHeld is how many bytes of one hung or late watch are kept, as a network would;
// beyond it the watch breaks.
const maxHeld = 8 << 20

var errHeldTooMuch = errors.New("the watch was held for too long")

// stream is one watch's answer. What is written goes on at once, until a fault holds
// it back.
type stream struct {
	http.ResponseWriter
	f      *Faults
	a      asked
	cancel context.CancelFunc // ends the watch
	ended  <-chan struct{}

	mu      sync.Mutex
	held    []piece
	size    int
	err     error
	pumping sync.WaitGroup
	pump    bool // a goroutine brings on what is held
	// dropMu is not mu, which is held while something is written: to a client that has
	// stopped that takes for ever, and faults must still be set.
	dropMu sync.Mutex
	drop   *time.Timer
}

// piece is something written, that goes on when it is due.
type piece struct {
	due   time.Time // without a hang
	bytes []byte
	flush bool
}

// Unwrap implements responsewriter.UserProvidedDecorator.
func (s *stream) Unwrap() http.ResponseWriter { return s.ResponseWriter }

// serveWatch serves a watch whose answer faults can reach.
func (f *Faults) serveWatch(next http.Handler, w http.ResponseWriter, r *http.Request, info *request.RequestInfo) {
	a := asked{info: info}
	if a.client, a.node = clientOf(r.UserAgent()); a.client == ClientOwn {
		next.ServeHTTP(w, r)
		return
	}
	if f.state.Load().terms != nil && !f.meet(w, r, info) {
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	s := &stream{ResponseWriter: w, f: f, a: a, cancel: cancel, ended: ctx.Done()}
	f.streamsMu.Lock()
	f.streams[s] = true
	f.streamsMu.Unlock()
	s.check()
	defer func() {
		f.streamsMu.Lock()
		delete(f.streams, s)
		f.streamsMu.Unlock()
		cancel()
		s.stopDropping()
		s.pumping.Wait()
	}()
	next.ServeHTTP(responsewriter.WrapForHTTP1Or2(s), r.WithContext(ctx))
}

// meant is the first term of a fault that reaches the stream, nil for none.
func (s *stream) meant(name string) *term {
	for _, t := range s.f.of(name) {
		if t.target.touches(s.a) && !s.f.joining(s.a.node) {
			return t
		}
	}
	return nil
}

// check follows that other faults are in force: a watch that is to be dropped ends.
func (s *stream) check() {
	s.dropMu.Lock()
	defer s.dropMu.Unlock()
	t := s.meant("watch-drop") // within: of two at once the later answer counts
	if s.drop != nil {
		s.drop.Stop()
		s.drop = nil
	}
	switch {
	case t == nil:
	case t.amount.d == 0:
		s.cancel()
	default:
		s.drop = time.AfterFunc(t.amount.d, s.cancel)
	}
}

func (s *stream) stopDropping() {
	s.dropMu.Lock()
	defer s.dropMu.Unlock()
	if s.drop != nil {
		s.drop.Stop()
	}
}

// late says by how much what is written now is late, and whether it goes on at all.
func (s *stream) late() (by time.Duration, hangs bool) {
	if s.f.state.Load().terms == nil {
		return 0, false
	}
	if t := s.meant("watch-delay"); t != nil {
		by = t.amount.d
	}
	return by, s.meant("watch-hang") != nil
}

// Write implements http.ResponseWriter.
func (s *stream) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return 0, s.err
	}
	by, hangs := s.late()
	if len(s.held) == 0 && by == 0 && !hangs {
		return s.ResponseWriter.Write(b)
	}
	if s.size += len(b); s.size > maxHeld {
		s.err = errHeldTooMuch
		return 0, s.err
	}
	s.held = append(s.held, piece{due: time.Now().Add(by), bytes: append([]byte(nil), b...)})
	if !s.pump {
		s.pump = true
		s.pumping.Go(s.bring)
	}
	return len(b), nil
}

// Flush implements http.Flusher.
func (s *stream) Flush() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.held); n > 0 {
		s.held[n-1].flush = true
		return
	}
	s.flush()
}

func (s *stream) flush() {
	if f, ok := s.ResponseWriter.(http.Flusher); ok {
		f.Flush()
	}
}

// bring brings on what is held, in its order, as it becomes due.
func (s *stream) bring() {
	for {
		over := s.f.Changed()
		s.mu.Lock()
		if len(s.held) == 0 {
			s.pump = false
			s.mu.Unlock()
			return
		}
		by, hangs := s.late()
		wait := time.Until(s.held[0].due)
		if by == 0 {
			wait = 0 // the delay was cleared
		}
		if !hangs && wait <= 0 {
			p := s.held[0]
			s.held, s.size = s.held[1:], s.size-len(p.bytes)
			if _, err := s.ResponseWriter.Write(p.bytes); err != nil {
				s.err = err
			}
			if p.flush {
				s.flush()
			}
			s.mu.Unlock()
			continue
		}
		s.mu.Unlock()
		var due <-chan time.Time
		if !hangs {
			due = time.After(wait)
		}
		select {
		case <-s.ended:
			return
		case <-over:
		case <-due:
		}
	}
}

// checkStreams tells every watch that other faults are in force.
func (f *Faults) checkStreams() {
	f.streamsMu.Lock()
	defer f.streamsMu.Unlock()
	for s := range f.streams {
		s.check()
	}
}
