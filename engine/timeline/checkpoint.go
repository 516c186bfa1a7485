package timeline

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/engine/timeline/graph"
)

// checkpointMagic begins every checkpoint.
const checkpointMagic = "kconverge.model\n"

var (
	// ErrNoCheckpoint is wrapped by Restore's errors about bytes that are not a
	// checkpoint, or a damaged one.
	ErrNoCheckpoint = errors.New("not a checkpoint of the model")
	// ErrOtherModel is wrapped by Restore's errors about the checkpoint of a
	// program whose model is built differently. The way out is to replay the
	// events from the start.
	ErrOtherModel = errors.New("a checkpoint of another version's model")
)

// checkpointTypes are what the model's interfaces may hold: payloads.
var checkpointTypes = func() graph.Types {
	types := graph.Types{}
	for _, p := range collect.Payloads() {
		types[p.Type()] = reflect.TypeOf(p)
	}
	return types
}()

var checkpointLayout = graph.Layout[Model](checkpointTypes)

// Checkpoint appends everything that the Model knows to b, the events that it still
// holds back among it: a Model that Restore makes of the bytes goes on as this one
// does. They are for the same build of the program only (see ErrOtherModel) and are
// not compressed.
func (m *Model) Checkpoint(b []byte) ([]byte, error) {
	m.written = graph.NewWriter[Model](checkpointTypes)
	return m.CheckpointAgain(b)
}

// CheckpointAgain is Checkpoint for one that is kept beside the one before: what has not
// changed since then is mostly written as it was. The Model holds on to all that it has
// written since Checkpoint.
func (m *Model) CheckpointAgain(b []byte) ([]byte, error) {
	if m.written == nil {
		return m.Checkpoint(b)
	}
	b = append(b, checkpointMagic...)
	b = binary.BigEndian.AppendUint64(b, checkpointLayout)
	b, err := m.written.Write(b, m)
	if err != nil {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	return b, nil
}

// Restore makes the Model that Checkpoint was asked of.
func Restore(b []byte) (*Model, error) {
	b, ok := bytes.CutPrefix(b, []byte(checkpointMagic))
	if !ok || len(b) < 8 {
		return nil, ErrNoCheckpoint
	}
	if binary.BigEndian.Uint64(b) != checkpointLayout {
		return nil, ErrOtherModel
	}
	m := &Model{}
	if err := graph.Read(b[8:], m, checkpointTypes); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoCheckpoint, err)
	}
	return m, nil
}

// Seq is the number of the last event that was applied.
func (m *Model) Seq() uint64 { return m.seq }

// Now is the latest time that an event had.
func (m *Model) Now() time.Time { return m.now }

// Sources are those that have told anything.
func (m *Model) Sources() []collect.SourceID { return slices.Sorted(maps.Keys(m.sources)) }
