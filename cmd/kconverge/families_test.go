package main

import "testing"

// TestADualStackServiceIsReportedInEachFamily: an endpoint of each family is its
// own endpoint, with a path of its own, of the same pod.
func TestADualStackServiceIsReportedInEachFamily(t *testing.T) {
	kubectl(t)
	h := newHome(t)
	code, stdout, stderr := h.run(t, nil, "lab", "--headless", "--nodes", "2", "--output", "json", "--run",
		`kubectl create service clusterip web --tcp=80:8080 --dry-run=client -o yaml |
		   sed 's/^spec:/&\n  ipFamilyPolicy: RequireDualStack/' | kubectl create -f - &&
		 kubectl create deployment web --image=nginx --replicas=3 &&
		 kubectl rollout status deployment/web`)
	if code != exitOK {
		t.Fatalf("exit code %d\n%s", code, stderr)
	}
	s := web(t, parse(t, stdout))
	if p := s.Planes; p.Pods.Have != 3 || p.Slices.Have != 6 || p.Endpoints.Have != 3 {
		t.Errorf("%d pods, %d in slices, %d in Endpoints; want 3, 6, 3", p.Pods.Have, p.Slices.Have, p.Endpoints.Have)
	}
	for node, p := range s.Planes.Rules {
		if p.Have != 6 || p.Want != 6 {
			t.Errorf("%s routes %d of %d, want 6", node, p.Have, p.Want)
		}
	}
	byFamily := map[string]map[string]bool{"IPv4": {}, "IPv6": {}}
	for i := range s.Paths {
		p := &s.Paths[i]
		if p.Op != "add" || p.Status != "arrived" || p.Endpoint.IP == "" {
			continue
		}
		causal(t, p, 2)
		if byFamily[p.Endpoint.Family] == nil || byFamily[p.Endpoint.Family][p.Endpoint.UID] {
			t.Fatalf("a second path of pod %s in family %q", p.Endpoint.Pod, p.Endpoint.Family)
		}
		byFamily[p.Endpoint.Family][p.Endpoint.UID] = true
		if (p.Endpoints != nil) != (p.Endpoint.Family == "IPv4") {
			t.Errorf("path %s of %s: hop over the legacy Endpoints is %+v", p.ID, p.Endpoint.Family, p.Endpoints)
		}
	}
	for family, pods := range byFamily {
		if len(pods) != 3 {
			t.Errorf("%d pods arrived in %s, want 3", len(pods), family)
		}
	}
}
