package nodelog

import (
	"context"
	"os"
	"time"
)

// growth waits until a file may have more. The kernel's word is only relied on after
// it has announced what then was there, since not every file system gives it: before
// that, and always without it, the file is looked at every pollEvery.
type growth struct {
	news   *os.File // tells of the file, nil without
	proven bool     // more came after a word of it, and never without
	told   bool     // before this look
	found  bool     // at this look
	looked time.Time
	undo   func() bool
}

// watchGrowth returns what tells when the file grows, is cut off or loses its name,
// until ctx ends. Of a pipe nothing is told: reading it waits.
func watchGrowth(ctx context.Context, t *tail) *growth {
	g := &growth{}
	if !t.pipe {
		g.news = openNews(t.f)
	}
	if g.news != nil {
		g.undo = context.AfterFunc(ctx, func() { _ = g.news.SetReadDeadline(time.Unix(1, 0)) })
	}
	return g
}

// read takes in how many bytes were read just now.
func (g *growth) read(n int) {
	if n > 0 && !g.found {
		g.proven, g.found = g.told, true
	}
	g.looked = time.Now()
}

// wait returns when the file is to be looked at, after the given time at the latest. Two
// looks lie pollEvery apart, so that a burst costs few of them.
func (g *growth) wait(ctx context.Context, most time.Duration) {
	g.told, g.found = false, false
	if g.news == nil || !g.proven {
		most = min(most, pollEvery)
	}
	if g.news == nil {
		sleep(ctx, most)
		return
	}
	_ = g.news.SetReadDeadline(time.Now().Add(most))
	if ctx.Err() != nil {
		return // and the deadline that ended a wait may be overwritten
	}
	switch more, moved := hear(g.news); {
	case moved: // another file may take its name, of which nothing is told
		g.proven = false
	case more:
		g.told = true
	default:
		return // it has been long enough
	}
	if rest := pollEvery - time.Since(g.looked); rest > 0 {
		sleep(ctx, rest)
	}
}

func (g *growth) close() {
	if g.news != nil {
		g.undo()
		g.news.Close()
	}
}

func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
