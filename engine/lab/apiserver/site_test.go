package apiserver_test

import (
	"encoding/json"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/kconverge/kconverge/engine/lab/apiserver"
)

func TestOnlyItsOwnNameAndNoOtherSitesPagesLetIn(t *testing.T) {
	s := start(t, apiserver.Options{})
	u := must(url.Parse(s.URL()))(t)
	_, port, err := net.SplitHostPort(u.Host)
	if err != nil {
		t.Fatal(err)
	}
	at := func(host string) string { return host + ":" + port }
	for _, c := range []struct {
		name, host, origin string
		refused            string // what is said; empty when it is let in
	}{
		{"its address", u.Host, "", ""},
		{"localhost", at("localhost"), "", ""},
		{"localhost in capitals", at("LOCALHOST"), "", ""},
		{"IPv6 loopback", at("[::1]"), "", ""},
		{"IPv6 loopback, written out", at("[0:0:0:0:0:0:0:1]"), "", ""},
		{"without a port", "127.0.0.1", "", ""},
		{"IPv6 without a port", "[::1]", "", ""},
		{"a forwarded port", "localhost:8443", "", ""},
		{"a name that leads here", at("rebound.example"), "", `"rebound.example`},
		{"a name below localhost", at("evil.localhost"), "", `"evil.localhost`},
		{"a name that begins like the address", at("127.0.0.1.example"), "", `"127.0.0.1.example`},
		{"another address", at("192.0.2.1"), "", `"192.0.2.1`},
		{"not a name", "a b", "", `"a b"`},
		{"a page of its own", u.Host, "https://" + u.Host, ""},
		{"a page of another site", u.Host, "https://site.example", `"https://site.example"`},
		{"a page of another port", u.Host, "https://127.0.0.1:1", `"https://127.0.0.1:1"`},
		{"a page without TLS", u.Host, "http://" + u.Host, `"http://`},
		{"a sandboxed page", u.Host, "null", `"null"`},
		{"an empty origin", u.Host, " ", `""`},
	} {
		for _, token := range []bool{true, false} {
			config := s.Config()
			if !token {
				config.BearerToken = ""
			}
			h := must(rest.HTTPClientFor(config))(t)
			body := strings.NewReader(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"generateName":"page-"}}`)
			req := must(http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL()+"/api/v1/namespaces/default/configmaps", body))(t)
			req.Header.Set("Content-Type", "application/json")
			req.Host = c.host
			if c.origin != "" {
				req.Header.Set("Origin", strings.TrimSpace(c.origin))
			}
			resp, err := h.Do(req)
			if err != nil {
				if c.refused != "" && strings.Contains(err.Error(), "invalid Host") {
					continue // the client itself does not send it
				}
				t.Fatalf("%s: %v", c.name, err)
			}
			var said metav1.Status
			if c.refused != "" {
				if err := json.NewDecoder(resp.Body).Decode(&said); err != nil {
					t.Errorf("%s: no Status: %v", c.name, err)
				}
			}
			resp.Body.Close()
			want := http.StatusCreated
			switch {
			case c.refused != "":
				want = http.StatusForbidden
			case !token:
				want = http.StatusUnauthorized
			}
			if resp.StatusCode != want {
				t.Errorf("%s, token %t: %s, want %d", c.name, token, resp.Status, want)
			}
			if c.refused != "" && (said.Reason != metav1.StatusReasonForbidden || int(said.Code) != want || !strings.Contains(said.Message, c.refused) || !strings.Contains(said.Message, "the lab's API server")) {
				t.Errorf("%s: it says %+v", c.name, said)
			}
		}
	}
	// What was refused has done nothing: as many objects as were let in with the
	// token.
	list := must(clientOf(t, s).CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{}))(t)
	if len(list.Items) != 9 {
		t.Errorf("%d objects were made, want 9", len(list.Items))
	}
}

func TestTheHostIsCheckedForWatchesAndHealthToo(t *testing.T) {
	s := start(t, apiserver.Options{})
	h := must(rest.HTTPClientFor(s.Config()))(t)
	for _, path := range []string{"/readyz", "/metrics", "/openapi/v2", "/api/v1/pods?watch=1", "/nowhere"} {
		req := must(http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL()+path, nil))(t)
		req.Host = "rebound.example"
		resp := must(h.Do(req))(t)
		resp.Body.Close()
		if resp.StatusCode != http.StatusForbidden {
			t.Errorf("GET %s: %s, want 403", path, resp.Status)
		}
	}
}
