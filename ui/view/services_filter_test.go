package view

import (
	"strings"
	"testing"
	"time"

	"github.com/kconverge/kconverge/engine/timeline"
)

func TestServicesAreFilteredByNamespaceStateAndWords(t *testing.T) {
	svc := func(ns, name string, state timeline.State) *timeline.Service {
		return &timeline.Service{Namespace: ns, Name: name, State: state}
	}
	gone := svc("shop", "old", timeline.Converged)
	gone.Deleted = time.Unix(1, 0)
	dark := svc("ops", "dark", timeline.Converged)
	dark.Coverage.Blind = []string{"node-1"}
	stopped := svc("ops", "late", timeline.Stalled)
	stopped.Differences = []timeline.Difference{{Kind: "stale", Stopped: time.Unix(1, 0)}}
	all := []*timeline.Service{svc("shop", "cart", timeline.Converging), svc("shop", "web", timeline.Converged), gone, svc("ops", "web", timeline.Converged), dark, stopped}
	for filter, want := range map[string]string{
		"":                       "shop/cart shop/web shop/old ops/web ops/dark ops/late",
		"shop/":                  "shop/cart shop/web shop/old",
		"!shop/":                 "ops/web ops/dark ops/late",
		"SH/web":                 "shop/web",
		"web":                    "ops/web shop/web", // the shorter one first
		"web ops/":               "ops/web",
		"state:converging":       "shop/cart",
		"state:conv":             "shop/cart shop/web shop/old ops/web ops/dark",
		"state:":                 "shop/cart shop/web shop/old ops/web ops/dark ops/late",
		"!state:converged":       "shop/cart ops/late",
		"state:deleted":          "shop/old",
		"state:blind":            "ops/dark",
		"state:risk":             "ops/late",
		"state:converged !web":   "shop/old ops/dark",
		"shop/ state:stalled":    "",
		"state:stalled la !shop": "ops/late",
	} {
		var got []string
		for _, s := range filterServices(filter, all) {
			got = append(got, key(s))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q leaves %q, want %q", filter, strings.Join(got, " "), want)
		}
	}
}
