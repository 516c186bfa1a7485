package view

// filtered is a list that a line of text filters: what the views that have one share.
type filtered struct {
	l       list
	filter  string
	editing bool
	top, h  int // of the list in the last drawing
}

// Text implements Typer.
func (f *filtered) Text() (string, bool) { return f.filter, true }

// SetText implements Typer.
func (f *filtered) SetText(s string, _ *Context) { f.filter, f.l = s, list{} }

// EndEdit implements Typer.
func (f *filtered) EndEdit() { f.editing = false }

// doFilter begins to edit the line, or takes away what stands there; ok is false when
// the action is another one.
func (f *filtered) doFilter(a Action) (r Request, ok bool) {
	switch a {
	case Filter:
		f.editing = true
		return Request{Handled: true, Edit: true}, true
	case Back:
		if f.filter == "" {
			return Request{}, true
		}
		f.filter = ""
		return handled, true
	}
	return Request{}, false
}

// click chooses the entry at y of n; again tells that it was chosen already. ok is
// false when there is none.
func (f *filtered) click(y, n int) (again, ok bool) {
	i := f.l.first + y - f.top
	if y < f.top || y >= f.top+f.h || i < 0 || i >= n {
		return false, false
	}
	again = f.l.at == i
	f.l.at = i
	return again, true
}
