package apiserver

import "testing"

func TestAPoolUsesAReturnedNumberLast(t *testing.T) {
	p := newPool(1, 3, 6) // 1 and 2 only by hand
	for want := uint32(3); want <= 6; want++ {
		if n, ok := p.any(); !ok || n != want {
			t.Fatalf("got %d %v, want %d", n, ok, want)
		}
	}
	if n, ok := p.any(); ok {
		t.Fatalf("a full pool gave %d", n)
	}
	p.free(5)
	p.free(3)
	for _, want := range []uint32{3, 5} {
		if n, ok := p.any(); !ok || n != want {
			t.Errorf("got %d %v, want %d", n, ok, want)
		}
	}
	if !p.take(1) || p.take(1) {
		t.Error("a number by hand is given once")
	}
	p.free(1)
	if !p.take(1) {
		t.Error("a returned number is free")
	}
}

func TestImageTagsDecideWhetherToPull(t *testing.T) {
	for image, want := range map[string]string{
		"nginx": "latest", "nginx:1.2": "1.2", "registry:5000/nginx": "latest", "registry:5000/nginx:2": "2", "nginx@sha256:abc": "",
	} {
		if got := imageTag(image); got != want {
			t.Errorf("%s: %q, want %q", image, got, want)
		}
	}
}
