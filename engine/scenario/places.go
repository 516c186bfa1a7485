package scenario

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/kconverge/kconverge/engine/timeline"
)

// A command line, a manifest and a fault may hold places in braces, which are filled in
// when the step is taken:
//
//	{pod web 1}      the name of the first pod of Service web, the oldest first
//	{node web 1}     that pod's node
//	{slice web 1}    the name of the first of its EndpointSlices
//	{advised web}    the preStop in whole seconds that the model advises for it
var place = regexp.MustCompile(`\{(pod|node|slice|advised) ([a-z0-9/.-]+)(?: ([0-9]+))?\}`)

// nearPlace finds what was meant to be one.
var nearPlace = regexp.MustCompile(`\{(pod|node|slice|advised)\b[^}]*\}`)

func checkPlaces(text string) error {
	for _, found := range nearPlace.FindAllString(text, -1) {
		m := place.FindStringSubmatch(found)
		if m == nil || m[0] != found || (m[1] == "advised") != (m[3] == "") {
			return fmt.Errorf("%s: write {pod SERVICE N}, {node SERVICE N}, {slice SERVICE N} or {advised SERVICE}", found)
		}
	}
	return nil
}

// fill fills in the places of a text by what is known now.
func fill(text string, snap *timeline.Snapshot) (out string, err error) {
	out = place.ReplaceAllStringFunc(text, func(found string) string {
		m := place.FindStringSubmatch(found)
		n, _ := strconv.Atoi(m[3])
		value, e := lookUp(m[1], m[2], n, snap)
		if e != nil && err == nil {
			err = fmt.Errorf("%s: %w", found, e)
		}
		return value
	})
	return out, err
}

func lookUp(what, service string, n int, snap *timeline.Snapshot) (string, error) {
	namespace, name := serviceOf(service)
	svc := snap.Service(namespace, name)
	if svc == nil {
		return "", fmt.Errorf("there is no Service %s/%s", namespace, name)
	}
	switch what {
	case "slice":
		if n < 1 || n > len(svc.SliceList) {
			return "", fmt.Errorf("%s has %d slices", name, len(svc.SliceList))
		}
		return svc.SliceList[n-1].Name, nil
	case "advised":
		a := svc.Advice(svc.Paths)
		if a.N == 0 {
			return "", fmt.Errorf("no removal of %s was seen from which a preStop could be advised", name)
		}
		return strconv.Itoa(int(math.Ceil(a.Worst.Needed().Seconds()))), nil
	}
	pods := slices.DeleteFunc(slices.Clone(svc.Facts.Pods), func(p timeline.PodFacts) bool { return p.Pod.Terminating() || p.Pod.Terminal() })
	began := func(p timeline.PodFacts) time.Time { return p.Pod.Created }
	slices.SortStableFunc(pods, func(a, b timeline.PodFacts) int {
		return cmp.Or(began(a).Compare(began(b)), cmp.Compare(a.Name, b.Name))
	})
	if n < 1 || n > len(pods) {
		return "", fmt.Errorf("%s has %d pods", name, len(pods))
	}
	if what == "node" {
		return pods[n-1].Pod.Node, nil
	}
	return pods[n-1].Name, nil
}
