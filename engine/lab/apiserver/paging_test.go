package apiserver_test

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// page asks for at most ten ConfigMaps.
func page(token string) metav1.ListOptions { return metav1.ListOptions{Limit: 10, Continue: token} }

func TestPagesAreOneMomentWhateverHappensBetweenThem(t *testing.T) {
	_, client := startClient(t)
	maps := client.CoreV1().ConfigMaps("default")
	for i := range 25 {
		must(maps.Create(t.Context(), configMap(fmt.Sprintf("m%02d", i), "before"), metav1.CreateOptions{}))(t)
	}
	got := map[string]string{}
	take := func(l *corev1.ConfigMapList) {
		for _, m := range l.Items {
			if _, twice := got[m.Name]; twice {
				t.Errorf("%s is on two pages", m.Name)
			}
			got[m.Name] = m.Data["n"]
		}
	}
	first := must(maps.List(t.Context(), page("")))(t)
	if len(first.Items) != 10 || first.Continue == "" || first.RemainingItemCount == nil || *first.RemainingItemCount != 15 {
		t.Fatalf("the first page has %d, continues with %q and %v remaining", len(first.Items), first.Continue, first.RemainingItemCount)
	}
	take(first)
	must(maps.Update(t.Context(), configMap("m15", "after"), metav1.UpdateOptions{}))(t)
	must(maps.Create(t.Context(), configMap("m145", "after"), metav1.CreateOptions{}))(t)
	if err := maps.Delete(t.Context(), "m20", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	pages := 1
	for l := first; l.Continue != ""; pages++ {
		l = must(maps.List(t.Context(), page(l.Continue)))(t)
		if l.ResourceVersion != first.ResourceVersion {
			t.Errorf("page %d is of %s, the first of %s", pages+1, l.ResourceVersion, first.ResourceVersion)
		}
		take(l)
	}
	if pages != 3 || len(got) != 25 {
		t.Errorf("%d pages with %d objects", pages, len(got))
	}
	for name, n := range got {
		if n != "before" {
			t.Errorf("%s is of a later moment than the first page", name)
		}
	}
}

func TestAnExpiredContinueTokenSaysSoAndBringsOneForTheRest(t *testing.T) {
	s, client := startClient(t)
	maps := client.CoreV1().ConfigMaps("default")
	for i := range 25 {
		must(maps.Create(t.Context(), configMap(fmt.Sprintf("m%02d", i), "before"), metav1.CreateOptions{}))(t)
	}
	first := must(maps.List(t.Context(), page("")))(t)
	must(maps.Update(t.Context(), configMap("m15", "after"), metav1.UpdateOptions{}))(t)
	if err := s.Compact(t.Context()); err != nil {
		t.Fatal(err)
	}
	var expired error
	eventually(t, func(ctx context.Context) error {
		_, expired = maps.List(ctx, page(first.Continue))
		if !apierrors.IsResourceExpired(expired) {
			return fmt.Errorf("a list with an old token: %w, want 410", expired)
		}
		return nil
	})
	status, ok := expired.(apierrors.APIStatus)
	if !ok || status.Status().ListMeta.Continue == "" {
		t.Fatalf("the error has no token for the rest: %v", expired)
	}
	rest := must(maps.List(t.Context(), page(status.Status().ListMeta.Continue)))(t)
	if len(rest.Items) != 10 || rest.Items[0].Name != "m10" || rest.Items[5].Data["n"] != "after" {
		t.Errorf("the rest begins with %s and has %d", rest.Items[0].Name, len(rest.Items))
	}
	if _, err := maps.List(t.Context(), page("rubbish")); !apierrors.IsBadRequest(err) {
		t.Errorf("a token that is none: %v, want 400", err)
	}
}
