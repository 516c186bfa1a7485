package lab

import (
	"context"
	"errors"
	"fmt"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/engine/lab/traffic"
)

// SetTraffic sets how many connections a second each node opens to each Service port,
// through the rules of its kernel; 0 for none. by is who asks, for the axis.
func (l *Lab) SetTraffic(ctx context.Context, by string, rate int) error {
	if err := l.WaitReady(ctx); err != nil {
		return err
	}
	if l.traffic == nil {
		return errors.Join(errNoPackets, l.refused)
	}
	if err := l.traffic.SetRate(rate); err != nil {
		return err
	}
	text := "traffic off"
	if rate > 0 {
		text = fmt.Sprintf("traffic %d/s", rate)
	}
	l.sink.Emit(collect.Event{At: l.o.Clock.Now(), Source: collect.SourceUser, Payload: &collect.Action{Text: text, By: by}})
	return nil
}

// Traffic is how many connections a second are opened; 0 where no packets flow.
func (l *Lab) Traffic() int {
	select {
	case <-l.ready:
	default:
		return 0
	}
	if l.traffic == nil {
		return 0
	}
	return l.traffic.Rate()
}

var errNoPackets = errors.New("no connections can be opened: the nodes are in memory, and no packets flow")

// trafficPart opens connections from the nodes; nil where they are in memory.
func (l *Lab) trafficPart(base *ground, sink collect.Sink) (*part, error) {
	if base.kernel == nil {
		return nil, nil
	}
	var from []traffic.Node
	for _, n := range base.kernel.Nodes() {
		from = append(from, n)
	}
	t, err := traffic.New(traffic.Options{Client: l.own, Nodes: from, Sink: sink, Clock: l.o.Clock, Rate: l.o.Traffic, While: l.faults.WhileAlive})
	if err != nil {
		return nil, err
	}
	l.traffic = t
	return &part{"traffic", t.Run}, nil
}
