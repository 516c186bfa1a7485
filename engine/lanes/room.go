package lanes

import (
	"sync"

	"github.com/kconverge/kconverge/engine/timeline"
)

// room is what a picture needs while it is made and leaves to the next one: most are
// made many times a second, and are much alike.
type room struct {
	overlay overlay
	have    []timeline.Count // of the lane that is made

	// Of agreement.
	changes, dealt []planeChange
	ends           []int
	steps          []agreementStep
	classes        []Class
}

var rooms = sync.Pool{New: func() any { return new(room) }}

// leave gives the room up.
func (r *room) leave() {
	r.overlay.cells = nil
	clear(r.overlay.out[:cap(r.overlay.out)])
	rooms.Put(r)
}
