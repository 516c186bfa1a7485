package main

import (
	"context"

	"github.com/kconverge/kconverge/collect/recording"
	"github.com/kconverge/kconverge/engine/live"
	"github.com/kconverge/kconverge/engine/timeline"
)

// runRecorded is run for the end of a recording, when nobody asks for the events on the
// way: where its last checkpoint tells what those before it come to they are not played.
func (o *observation) runRecorded(ctx context.Context, file *recording.File) error {
	if last, ok := ending(file); ok {
		o.defaults()
		return o.conclude(last, nil)
	}
	return o.run(ctx)
}

// ending is what a recording comes to, told by its last checkpoint and the events after
// it. It is false where only playing all of them can tell: there is no index, something
// is damaged, the end is missing, or the checkpoints are not this very program's. Every
// frame is compared with its sum.
func ending(file *recording.File) (*timeline.Snapshot, bool) {
	if v := exactVersion(); v == "" || file.Tool != v || !file.Indexed || file.Cut || !file.Intact() {
		return nil, false
	}
	last, err := live.NewReel(file).End()
	return last, err == nil
}
