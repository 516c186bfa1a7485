package recording

import (
	"context"
	"errors"
	"io"
	"sync/atomic"
	"time"

	"github.com/kconverge/kconverge/collect"
)

// Player plays a recording as a Source.
type Player struct {
	file  *File
	speed float64
	// damaged counts the parts that could not be read.
	damaged atomic.Int64
}

// NewPlayer plays a recording. speed is the number of recorded seconds that pass in
// one second; 0 plays everything at once.
func NewPlayer(f *File, speed float64) *Player { return &Player{file: f, speed: speed} }

// Damaged is how many parts of what was played could not be read. It is safe for
// concurrent use.
func (p *Player) Damaged() int { return int(p.damaged.Load()) }

// Name implements collect.Source.
func (p *Player) Name() string { return "recording " + p.file.path }

// Run implements collect.Source: it emits every event and returns at the end
// of the file.
func (p *Player) Run(ctx context.Context, sink collect.Sink) error {
	r := p.file.Read(0)
	var first time.Time
	begin := time.Now()
	for {
		e, err := r.Next()
		p.damaged.Store(int64(r.Damaged))
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if first.IsZero() {
			first = e.At
		}
		if p.speed > 0 {
			due := begin.Add(time.Duration(float64(e.At.Sub(first)) / p.speed))
			t := time.NewTimer(time.Until(due))
			select {
			case <-ctx.Done():
				t.Stop()
				return nil
			case <-t.C:
			}
		}
		if ctx.Err() != nil {
			return nil
		}
		sink.Emit(e)
	}
}
