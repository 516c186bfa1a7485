package kube

import (
	"testing"

	"github.com/kconverge/kconverge/collect"
)

func TestPodsInARowShareWhatIsTheSame(t *testing.T) {
	pod := func(app, owner string) *collect.Pod {
		return &collect.Pod{Labels: map[string]string{"app": app}, Owner: &collect.Owner{Kind: "ReplicaSet", Name: owner}}
	}
	var s sharer
	a, b, c, d := pod("web", "web-1"), pod("web", "web-1"), pod("web", "web-2"), pod("api", "web-2")
	for _, p := range []collect.Payload{a, b, &collect.Node{}, c, d} {
		s.share(p)
	}
	same := func(x, y *collect.Pod) bool {
		x.Labels["probe"] = "1"
		defer delete(x.Labels, "probe")
		return y.Labels["probe"] == "1"
	}
	if !same(a, b) || a.Owner != b.Owner {
		t.Error("two pods of one owner have their own labels or owner each")
	}
	if !same(a, c) || c.Owner == a.Owner || c.Owner.Name != "web-2" {
		t.Errorf("a pod of another owner: owner %+v", c.Owner)
	}
	if same(c, d) || d.Labels["app"] != "api" || d.Owner != c.Owner {
		t.Errorf("a pod with other labels: %v, owner %+v", d.Labels, d.Owner)
	}
}
