package view

// list is a chosen entry among n and the first one shown.
type list struct {
	at, first int
}

// fit keeps the chosen entry inside n and on a page of h lines.
func (l *list) fit(n, h int) {
	l.at = max(0, min(l.at, n-1))
	h = max(h, 1)
	if l.at < l.first {
		l.first = l.at
	}
	if l.at >= l.first+h {
		l.first = l.at - h + 1
	}
	l.first = max(0, min(l.first, n-h))
}

// do moves the choice; ok is false when the action is not a movement.
func (l *list) do(a Action, n, h int) (ok bool) {
	switch a {
	case Up:
		l.at--
	case Down:
		l.at++
	case PageUp:
		l.at -= max(h-1, 1)
	case PageDown:
		l.at += max(h-1, 1)
	case Top:
		l.at = 0
	case Bottom:
		l.at = n - 1
	default:
		return false
	}
	l.fit(n, h)
	return true
}
