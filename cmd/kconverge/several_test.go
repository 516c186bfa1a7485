package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/kconverge/kconverge/engine/report"
)

// Several namespaces at once, Services by name in them, and the Roles for that.
func TestSeveralNamespacesAreWatched(t *testing.T) {
	h := newHome(t)
	h.lab(t, "--nodes", "1", "--seed")
	for _, ns := range []string{"shop", "other"} {
		h.kubectl(t, "create", "namespace", ns)
		h.kubectl(t, "create", "deployment", "web", "--image=nginx", "--replicas=2", "-n", ns)
		h.kubectl(t, "expose", "deployment", "web", "--port=80", "--target-port=8080", "-n", ns)
		h.kubectl(t, "rollout", "status", "deployment/web", "-n", ns)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"-n", "shop,default"}, "default/web shop/web"},
		{[]string{"-n", "shop"}, "shop/web"},
		{[]string{"-n", "shop,default,shop", "svc/web.shop"}, "shop/web"},
		{[]string{"-A", "svc/web.other", "service/web.default"}, "default/web other/web"},
	} {
		_, stdout, stderr := h.run(t, nil, append([]string{"watch", "--headless", "--for", "2s", "-o", "json", "--kubeconfig", h.kubeconfig()}, c.args...)...)
		var r report.Report
		if err := json.Unmarshal([]byte(stdout), &r); err != nil {
			t.Fatalf("%v: %v\n%s", c.args, err, stderr)
		}
		var got []string
		for _, s := range r.Services {
			got = append(got, s.Namespace+"/"+s.Name)
			if s.Planes.Slices == nil || s.Planes.Slices.Have < 2 {
				t.Errorf("%v: %s/%s has %+v", c.args, s.Namespace, s.Name, s.Planes.Slices)
			}
		}
		slices.Sort(got)
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("%v: %s, want %s", c.args, s, c.want)
		}
	}
	_, _, stderr := h.run(t, nil, "watch", "--headless", "--for", "1s", "--kubeconfig", h.kubeconfig(), "-n", "shop,nowhere")
	if !strings.Contains(stderr, `namespace "nowhere" does not exist`) || strings.Contains(stderr, `namespace "shop"`) {
		t.Errorf("nothing of the namespace that is not there: %s", stderr)
	}
	_, roles, _ := h.run(t, nil, "info", "--rbac", "-n", "shop,other")
	if strings.Count(roles, "namespace: \"shop\"") != 1 || strings.Count(roles, "namespace: \"other\"") != 1 || strings.Count(roles, "kind: ClusterRole\n") != 1 {
		t.Errorf("roles:\n%s", roles)
	}
	_, info, _ := h.run(t, nil, "info", "--kubeconfig", h.kubeconfig(), "-n", "shop,other")
	if !strings.Contains(info, "namespace other, shop\n") || strings.Count(info, "seen\n") < 5 {
		t.Errorf("info:\n%s", info)
	}
}
