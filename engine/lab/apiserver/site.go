package apiserver

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	genericapiserver "k8s.io/apiserver/pkg/server"
)

// ownSite lets nobody in but clients that mean this server. A web page can make a
// browser on this machine ask for its own name, which it has made to lead to
// 127.0.0.1 (DNS rebinding): then Host is that name. And it can make the browser
// ask 127.0.0.1 directly: then Origin names the page. Neither has the token, but
// neither should get as far as being asked for it.
type ownSite struct {
	host string // where the server listens
	// wrap is put around what serves resources; nil for nothing.
	wrap func(http.Handler) http.Handler
}

// chain puts the check before everything else that a request meets.
func (o ownSite) chain(api http.Handler, c *genericapiserver.Config) http.Handler {
	if o.wrap != nil {
		api = o.wrap(api)
	}
	next := genericapiserver.DefaultBuildHandlerChain(api, c)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if why := o.refuses(r); why != "" {
			forbid(w, why)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// refuses says why a request is not let in, and the way out; empty when it is.
func (o ownSite) refuses(r *http.Request) string {
	if !o.names(r.Host) {
		return fmt.Sprintf("this is the lab's API server, and Host %q is not its name: ask for 127.0.0.1, localhost, [::1] or %s, as the lab's kubeconfig does", r.Host, o.host)
	}
	for _, origin := range r.Header.Values("Origin") {
		// Everything is served by TLS, so its own pages, if there were any,
		// would be https.
		if u, err := url.Parse(origin); err != nil || u.Scheme != "https" || !strings.EqualFold(u.Host, r.Host) {
			return fmt.Sprintf("this is the lab's API server, and it answers no pages of other sites, such as %q: leave the Origin header out, as kubectl does", origin)
		}
	}
	return ""
}

// names tells whether a Host header, with or without a port, means this server.
// The port is not looked at: it may have been forwarded.
func (o ownSite) names(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	} else {
		host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	}
	if strings.EqualFold(host, "localhost") || strings.EqualFold(host, o.host) {
		return true
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return false
	}
	if listening, err := netip.ParseAddr(o.host); err == nil && ip == listening {
		return true
	}
	return ip == netip.AddrFrom4([4]byte{127, 0, 0, 1}) || ip == netip.IPv6Loopback()
}

// forbid answers with 403 as the API server itself would.
func forbid(w http.ResponseWriter, why string) {
	b, err := json.Marshal(&metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Reason: metav1.StatusReasonForbidden, Code: http.StatusForbidden, Message: why,
	})
	if err != nil {
		http.Error(w, why, http.StatusForbidden)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(http.StatusForbidden)
	_, _ = w.Write(b) // the client may be gone
}
