package ui

import (
	"context"
	"fmt"
	"strconv"

	tea "charm.land/bubbletea/v2"
)

// Traffic opens connections in a lab, at a rate; Actions may have it.
type Traffic interface {
	// SetTraffic sets how many connections a second each node opens to each Service
	// port. by is who asks, for the axis.
	SetTraffic(ctx context.Context, by string, rate int) error
	// Traffic is the rate now.
	Traffic() int
}

// maxTraffic is the most connections a second.
const maxTraffic = 200

func (m *Model) askTraffic() tea.Cmd {
	t, ok := m.o.Actions.(Traffic)
	if !ok {
		m.complain(m.o.NoActions)
		return nil
	}
	m.layer = &prompt{
		title: "connections a second from each node to each Service", text: strconv.Itoa(t.Traffic()), fresh: true, number: true, note: "0 for none   ⏎ do it   esc leave",
		enter: func(m *Model, s string) tea.Cmd {
			n, err := strconv.Atoi(s)
			if err != nil || n < 0 || n > maxTraffic {
				m.complain(fmt.Sprintf("connections a second must be a number from 0 to %d", maxTraffic))
				return nil
			}
			return m.act(fmt.Sprintf("traffic %d/s", n), func(ctx context.Context) error { return t.SetTraffic(ctx, "screen", n) })
		},
	}
	return nil
}
