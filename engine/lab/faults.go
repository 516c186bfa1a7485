package lab

import (
	"context"

	"github.com/kconverge/kconverge/engine/lab/faults"
)

// SetFaults sets or clears faults, each as NAME=VALUE (faults.Parse); they are in force
// when it returns. When one of them is wrong nothing is changed, and the error says what
// would be right. by is who asks, for the axis: "screen", "scenario".
func (l *Lab) SetFaults(ctx context.Context, by string, texts ...string) error {
	settings, err := faults.ParseAll(texts)
	if err != nil {
		return err
	}
	if err := l.WaitReady(ctx); err != nil {
		return err
	}
	return l.faults.Set(ctx, l.own, settings, by)
}

// ClearFaults clears all faults.
func (l *Lab) ClearFaults(ctx context.Context, by string) error {
	var texts []string
	for _, a := range l.faults.List() {
		a.Amount = "off"
		texts = append(texts, a.String())
	}
	return l.SetFaults(ctx, by, texts...)
}

// Faults are those that are in force, by name and target.
func (l *Lab) Faults() []faults.Active { return l.faults.List() }
