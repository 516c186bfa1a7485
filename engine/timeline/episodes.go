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
	for _, p := range s.paths {
		// The last episode that began by then.
		i, exact := slices.BinarySearchFunc(out, p.startAt, func(e Episode, at time.Time) int { return e.Start.Compare(at) })
		if !exact {
			i--
		}
		if i < 0 || !out[i].End.IsZero() && p.startAt.After(out[i].End) {
			continue
		}
		e := &out[i]
		e.Paths = append(e.Paths, p.ID)
		switch p.Op {
		case OpAdd:
			e.Adds++
		case OpRemove:
			e.Removes++
		}
	}
	return out
}
