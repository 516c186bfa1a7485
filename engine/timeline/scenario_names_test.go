package timeline

import (
	"strconv"
	"time"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/engine/timeline/timelinetest"
)

// epoch is time 0 of every scenario.
var epoch = timelinetest.Epoch

func dur(s string) time.Duration {
	d, err := timelinetest.Duration(s)
	if err != nil {
		panic(err)
	}
	return d
}

func num(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		panic(err)
	}
	return n
}

// scenario reads events; see timelinetest.
type scenario struct{ *timelinetest.Scenario }

func newScenario() scenario { return scenario{timelinetest.New()} }

func (sc scenario) parse(text string) ([]collect.Event, error) { return sc.Parse(text) }
