package faults

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/kubernetes"
)

// asked is one request, as targets look at it.
type asked struct {
	client, node string
	info         *request.RequestInfo
}

// touches reports that a request is meant. What the lab does itself never is, viewers
// are only when they are named, and watches where the verb is.
func (t *target) touches(a asked) bool {
	switch {
	case a.client == ClientOwn:
		return false
	case len(t.clients) == 0 && a.client == ClientViewer:
		return false
	case len(t.clients) > 0 && !slices.Contains(t.clients, a.client):
		return false
	case len(t.nodes) > 0 && !slices.Contains(t.nodes, a.node):
		return false
	case len(t.verbs) > 0 && !slices.Contains(t.verbs, a.info.Verb):
		return false
	case len(t.names) > 0 && !slices.Contains(t.names, a.info.Name):
		return false
	}
	resource := a.info.Resource
	if a.info.Subresource != "" {
		resource += "/" + a.info.Subresource
	}
	return len(t.resources) == 0 || slices.Contains(t.resources, resource) || slices.Contains(t.resources, a.info.Resource)
}

// Handler puts the faults of requests and watches before a handler of the API server
// that knows what is asked (request.RequestInfoFrom).
func (f *Faults) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info, ok := request.RequestInfoFrom(r.Context())
		if !ok || !info.IsResourceRequest {
			next.ServeHTTP(w, r)
			return
		}
		if info.Verb == "watch" {
			f.serveWatch(next, w, r, info)
			return
		}
		if f.state.Load().terms != nil && !f.meet(w, r, info) {
			return
		}
		next.ServeHTTP(w, r)
	})
}

// meet applies what a request meets on its way, and reports that it may go on.
func (f *Faults) meet(w http.ResponseWriter, r *http.Request, info *request.RequestInfo) bool {
	a := asked{info: info}
	if a.client, a.node = clientOf(r.UserAgent()); a.client == ClientOwn {
		return true
	}
	watch := info.Verb == "watch"
	for _, t := range f.of("api-delay") {
		if t.target.touches(a) && (!watch || slices.Contains(t.target.verbs, "watch")) {
			f.wait(r.Context(), "api-delay", t)
		}
	}
	for _, t := range f.of("api-error") {
		meant := !watch || slices.Contains(t.target.verbs, "watch")
		if t.amount.code == http.StatusGone {
			meant = resumes(r, watch)
		}
		if t.target.touches(a) && meant && t.strikes() {
			refuse(w, t)
			return false
		}
	}
	if info.Verb == "update" {
		f.compete(r.Context(), a)
	}
	return true
}

// resumes reports that a request goes on with a watch where an earlier one was: only
// that can be too old. One that asks for what there is now, and a list, never are.
func resumes(r *http.Request, watch bool) bool {
	q := r.URL.Query()
	version := q.Get("resourceVersion")
	return watch && version != "" && version != "0" && q.Get("sendInitialEvents") != "true"
}

// reasons are those that the API server gives with its codes.
var reasons = map[int]metav1.StatusReason{
	410: metav1.StatusReasonExpired, 429: metav1.StatusReasonTooManyRequests, 500: metav1.StatusReasonInternalError,
	503: metav1.StatusReasonServiceUnavailable, 504: metav1.StatusReasonTimeout,
}

// refuse answers as an API server in trouble does. It asks nobody to come back at a
// time: each client does what it does by itself.
func refuse(w http.ResponseWriter, t *term) {
	text := fmt.Sprintf("the lab's fault %s: %s", t.Setting, codes[t.amount.code])
	b, err := json.Marshal(&metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Code: int32(t.amount.code), Reason: reasons[t.amount.code], Message: text,
	})
	if err != nil {
		http.Error(w, text, t.amount.code)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(t.amount.code)
	_, _ = w.Write(b) // the client may be gone
}

// competingManager is who the competing writer says it is.
const competingManager = "kconverge-competing-writer"

// competingAnnotation is what it writes, so that nothing that counts is changed.
const competingAnnotation = "kconverge.dev/written-by-another"

// Compete gives the competing writer its way to the API server.
func (f *Faults) Compete(client kubernetes.Interface) { f.writer.Store(&client) }

// compete writes an object that somebody is about to update, having read it: what
// follows is a conflict of two real writers, which the API server finds by itself.
func (f *Faults) compete(ctx context.Context, a asked) {
	client := f.writer.Load()
	if client == nil {
		return
	}
	for _, t := range f.of("conflict") {
		limits := t.target
		if len(limits.resources) == 0 {
			limits.resources = []string{"endpointslices"}
		}
		if !limits.touches(a) || !t.strikes() {
			continue
		}
		path := a.info.Path
		if a.info.Subresource != "" {
			path = strings.TrimSuffix(path, "/"+a.info.Subresource)
		}
		patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, competingAnnotation, fmt.Sprint(f.o.Clock.Now().UnixNano()))
		// When the object is gone, or nobody answers, there is no conflict either.
		_ = (*client).CoreV1().RESTClient().Patch(types.MergePatchType).AbsPath(path).
			Param("fieldManager", competingManager).Body(patch).Do(ctx).Error()
		return
	}
}
