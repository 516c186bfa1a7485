package apiserver_test

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

func TestAPreconditionThatDoesNotHoldStopsAWriteAndADeletion(t *testing.T) {
	_, client := startClient(t)
	maps := client.CoreV1().ConfigMaps("default")
	first := must(maps.Create(t.Context(), configMap("m", "1"), metav1.CreateOptions{}))(t)
	second := must(maps.Update(t.Context(), configMap("m", "2"), metav1.UpdateOptions{}))(t)
	another := types.UID("another")
	for name, p := range map[string]metav1.Preconditions{
		"an old version": {ResourceVersion: &first.ResourceVersion},
		"another UID":    {UID: &another},
		"both":           {UID: &first.UID, ResourceVersion: &first.ResourceVersion},
	} {
		if err := maps.Delete(t.Context(), "m", metav1.DeleteOptions{Preconditions: &p}); !apierrors.IsConflict(err) {
			t.Errorf("deletion with %s: %v, want 409", name, err)
		}
	}
	m := second.DeepCopy()
	m.UID = another
	if _, err := maps.Update(t.Context(), m, metav1.UpdateOptions{}); !apierrors.IsConflict(err) && !apierrors.IsInvalid(err) {
		t.Errorf("an update of another UID: %v, want a refusal", err)
	}
	stale := []byte(`{"metadata":{"resourceVersion":"` + first.ResourceVersion + `"},"data":{"n":"3"}}`)
	if _, err := maps.Patch(t.Context(), "m", types.MergePatchType, stale, metav1.PatchOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("a patch of an old version: %v, want 409", err)
	}
	test := []byte(`[{"op":"test","path":"/data/n","value":"1"},{"op":"replace","path":"/data/n","value":"3"}]`)
	if _, err := maps.Patch(t.Context(), "m", types.JSONPatchType, test, metav1.PatchOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("a patch whose test fails: %v, want 422", err)
	}
	if now := must(maps.Get(t.Context(), "m", metav1.GetOptions{}))(t); now.ResourceVersion != second.ResourceVersion || now.Data["n"] != "2" {
		t.Errorf("one of them wrote: %s %v", now.ResourceVersion, now.Data)
	}
	if err := maps.Delete(t.Context(), "m", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &second.UID, ResourceVersion: &second.ResourceVersion}}); err != nil {
		t.Errorf("deletion with what holds: %v", err)
	}
}

func TestAnObjectWithFinalizersStaysUntilTheLastOneIsTaken(t *testing.T) {
	_, client := startClient(t)
	maps := client.CoreV1().ConfigMaps("default")
	m := configMap("m", "1")
	m.Finalizers = []string{"example.com/one", "example.com/two"}
	must(maps.Create(t.Context(), m, metav1.CreateOptions{}))(t)
	w := must(maps.Watch(t.Context(), metav1.ListOptions{ResourceVersion: "0"}))(t)
	defer w.Stop()
	for range 2 { // the second changes nothing
		if err := maps.Delete(t.Context(), "m", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	m = must(maps.Get(t.Context(), "m", metav1.GetOptions{}))(t)
	if m.DeletionTimestamp == nil || m.DeletionGracePeriodSeconds == nil || *m.DeletionGracePeriodSeconds != 0 {
		t.Fatalf("the deleted object is %+v", m.ObjectMeta)
	}
	if _, err := maps.Create(t.Context(), configMap("m", "2"), metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
		t.Errorf("its name is free already: %v", err)
	}
	alive := m.DeepCopy()
	alive.DeletionTimestamp, alive.Data["n"] = nil, "2"
	if alive = must(maps.Update(t.Context(), alive, metav1.UpdateOptions{}))(t); alive.DeletionTimestamp == nil || alive.Data["n"] != "2" {
		t.Errorf("an update brought it back or was lost: %v %v", alive.DeletionTimestamp, alive.Data)
	}
	more := alive.DeepCopy()
	more.Finalizers = append(more.Finalizers, "example.com/three")
	if _, err := maps.Update(t.Context(), more, metav1.UpdateOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("a finalizer was added to a deleted object: %v", err)
	}
	for _, left := range [][]string{{"example.com/two"}, nil} {
		alive.Finalizers = left
		alive = must(maps.Update(t.Context(), alive, metav1.UpdateOptions{}))(t)
	}
	if _, err := maps.Get(t.Context(), "m", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("without finalizers: %v, want NotFound", err)
	}
	var kinds []string
	for len(kinds) == 0 || kinds[len(kinds)-1] != "DELETED" {
		e, ok := next(t, w)
		if !ok {
			t.Fatalf("the watch ended after %v", kinds)
		}
		kinds = append(kinds, string(e.Type))
	}
	// Created, marked, changed, one finalizer fewer, gone.
	if got := strings.Join(kinds, " "); got != "ADDED MODIFIED MODIFIED MODIFIED DELETED" {
		t.Errorf("the watch brought %s", got)
	}
}

func TestProtobufIsWhatIsAskedForAndAnswered(t *testing.T) {
	s, client := startClient(t)
	want := must(client.CoreV1().Services("default").Create(t.Context(), service("web", corev1.ServiceSpec{Selector: map[string]string{"app": "web"}}), metav1.CreateOptions{}))(t)
	web := must(rest.HTTPClientFor(s.Config()))(t)
	ask := func(accept, path string) (string, []byte) {
		t.Helper()
		req := must(http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL()+path, nil))(t)
		req.Header.Set("Accept", accept)
		resp := must(web.Do(req))(t)
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			t.Fatalf("%s as %s: %s", path, accept, resp.Status)
		}
		return resp.Header.Get("Content-Type"), must(io.ReadAll(resp.Body))(t)
	}
	const services, metaVersion = "/api/v1/namespaces/default/services", ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
	proto := []byte{'k', '8', 's', 0} // how every protobuf answer begins
	for _, c := range []struct {
		accept, path string
		begins       []byte
	}{
		{runtime.ContentTypeProtobuf, services, proto},
		{runtime.ContentTypeProtobuf, services + "/web", proto},
		{runtime.ContentTypeProtobuf + metaVersion, services, proto},
		{runtime.ContentTypeJSON, services, []byte("{")},
		{runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON, "/api/v1", proto},
	} {
		is, body := ask(c.accept, c.path)
		if asked, _, _ := strings.Cut(c.accept, ";"); !strings.HasPrefix(asked, strings.Split(is, ";")[0]) || !bytes.HasPrefix(body, c.begins) {
			t.Errorf("%s as %s: answered %s, %.8q", c.path, c.accept, is, body)
		}
	}
	// A stream of protobuf carries the length of each event before it.
	is, body := ask(runtime.ContentTypeProtobuf+";stream=watch", services+"?watch=true&resourceVersion=0&timeoutSeconds=1")
	if !strings.HasPrefix(is, runtime.ContentTypeProtobuf) || len(body) < 8 || bytes.HasPrefix(body, []byte("{")) {
		t.Errorf("a watch as protobuf: answered %s, %.8q", is, body)
	}
	// Both forms are the same object.
	config := s.Config()
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	got := must(clientFor(t, config).CoreV1().Services("default").Get(t.Context(), "web", metav1.GetOptions{}))(t)
	a, b := must(want.Marshal())(t), must(got.Marshal())(t)
	if !bytes.Equal(a, b) {
		t.Errorf("as protobuf\n%+v\nas JSON\n%+v", want, got)
	}
}
