package timeline

import (
	"slices"
	"time"
)

// recordEpisode opens an episode when the first difference comes, and closes it
// when the last one goes. One that lasted no time at all is none.
func (s *service) recordEpisode(at time.Time) {
	last, ok := s.episodes.last()
	open := ok && last.End.IsZero()
	switch {
	case s.diffs > 0 && !open:
		if ok && !at.After(last.End) {
			last.End = time.Time{} // it goes on
			s.episodes.replaceLast(last)
			break
		}
		s.episodes.append(Episode{N: last.N + 1, Start: at})
	case s.diffs == 0 && open && !at.After(last.Start):
		s.episodes.dropLast()
	case s.diffs == 0 && open:
		last.End = at
		s.episodes.replaceLast(last)
	default:
		return
	}
	s.dirty = true
}

// episodeViews lists the episodes with the paths that start in each.
func (s *service) episodeViews() []Episode {
	out := slices.Clone(s.episodes.items)
	in := make([]int, len(s.paths)) // the place of each path's episode, -1 for none
	n := make([]int, len(out))      // how many paths each has
	// of tells that place i is the last episode that began by a moment, or the first
	// of those that began at it.
	of := func(i int, at time.Time) bool {
		switch {
		case i < 0 || i >= len(out):
			return false
		case out[i].Start.Equal(at):
			return i == 0 || out[i-1].Start.Before(at)
		}
		return out[i].Start.Before(at) && (i+1 == len(out) || out[i+1].Start.After(at))
	}
	i := -1
	for k, p := range s.paths {
		// Most paths are of the episode of the one before, or of the next.
		if of(i+1, p.startAt) {
			i++
		} else if !of(i, p.startAt) {
			var exact bool
			i, exact = slices.BinarySearchFunc(out, p.startAt, func(e Episode, at time.Time) int { return e.Start.Compare(at) })
			if !exact {
				i--
			}
		}
		in[k] = i
		if i < 0 || !out[i].End.IsZero() && p.startAt.After(out[i].End) {
			in[k] = -1
			continue
		}
		n[i]++
		switch p.Op {
		case OpAdd:
			out[i].Adds++
		case OpRemove:
			out[i].Removes++
		}
	}
	room := make([]string, len(s.paths)) // of them all: there are very many
	for i := range out {
		if n[i] > 0 {
			out[i].Paths, room = room[:0:n[i]], room[n[i]:]
		}
	}
	for k, p := range s.paths {
		if i := in[k]; i >= 0 {
			out[i].Paths = append(out[i].Paths, p.ID)
		}
	}
	return out
}
