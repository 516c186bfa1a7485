package kube

import "testing"

func TestOnlyAServerOnThisMachineIsLocal(t *testing.T) {
	for server, want := range map[string]bool{
		"https://127.0.0.1:6443": true, "https://[::1]:6443/": true, "https://localhost:6443": true, "127.0.0.1:6443": true, "https://127.0.0.1": true, "[::1]": true,
		"https://10.0.0.1:6443": false, "https://localhost.example.com": false, "https://example.com/127.0.0.1": false, "api": false, "": false, "https://[2001:db8::1]": false,
	} {
		if got := loopback(server); got != want {
			t.Errorf("%q is on this machine: %v", server, got)
		}
	}
}
