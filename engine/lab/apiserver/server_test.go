package apiserver_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kconverge/kconverge/engine/lab/apiserver"
)

func TestServerSaysItsVersionAndHealth(t *testing.T) {
	s, client := startClient(t)
	v := must(client.Discovery().ServerVersion())(t)
	if v.GitVersion != "v1.37.2" || v.Major != "1" || v.Minor != "37" {
		t.Errorf("version %+v", v)
	}
	h := must(rest.HTTPClientFor(s.Config()))(t)
	for path, want := range map[string]string{
		"/healthz": "ok", "/readyz": "ok", "/metrics": "apiserver_request_total", "/openapi/v3": "apis/apps/v1", "/openapi/v2": "io.k8s.api.core.v1.Service",
	} {
		resp := must(h.Get(s.URL() + path))(t)
		body := must(io.ReadAll(resp.Body))(t)
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK || !strings.Contains(string(body), want) {
			t.Errorf("GET %s: %s, %d bytes, without %q", path, resp.Status, len(body), want)
		}
	}
}

func TestKubeconfigIsSelfContained(t *testing.T) {
	s := start(t, apiserver.Options{})
	raw := must(s.Kubeconfig())(t)
	loaded := must(clientcmd.Load(raw))(t)
	if loaded.CurrentContext != "kconverge-lab" {
		t.Errorf("current context %q", loaded.CurrentContext)
	}
	config := must(clientcmd.RESTConfigFromKubeConfig(raw))(t)
	client := must(kubernetes.NewForConfig(config))(t)
	list := must(client.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{}))(t)
	if len(list.Items) != 2 {
		t.Errorf("%d namespaces, want default and kube-system", len(list.Items))
	}
}

func TestOnlyTheTokenLetsIn(t *testing.T) {
	s := start(t, apiserver.Options{Token: "the-token"})
	for _, token := range []string{"", "the-toke", "the-token2", "another"} {
		config := s.Config()
		config.BearerToken = token
		client := must(kubernetes.NewForConfig(config))(t)
		_, err := client.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
		if !apierrors.IsUnauthorized(err) {
			t.Errorf("token %q: %v, want 401", token, err)
		}
	}
	if config := s.Config(); config.BearerToken != "the-token" {
		t.Errorf("the given token was not used")
	}
	// Without the CA the server is not trusted.
	config := s.Config()
	config.CAData = nil
	client := must(kubernetes.NewForConfig(config))(t)
	if _, err := client.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{}); err == nil {
		t.Error("a client without the lab's CA was content")
	}
}

func TestATakenPortNamesTheAddressAndTheWayOut(t *testing.T) {
	ln := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer ln.Close()
	addr := ln.Addr().String()
	_, err := apiserver.Start(t.Context(), apiserver.Options{Addr: addr})
	var taken *apiserver.AddressError
	if !errors.As(err, &taken) || taken.Addr != addr || !errors.Is(err, syscall.EADDRINUSE) {
		t.Fatalf("got %v, want an AddressError for %s", err, addr)
	}
	for _, want := range []string{addr, "--port 0"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
}

// descriptors counts this process's open files.
func descriptors(t *testing.T) int {
	t.Helper()
	return len(must(os.ReadDir("/proc/self/fd"))(t))
}

// leavesNothing checks that nothing is left of what do does. What exists once
// per process comes from a server started and stopped before.
func leavesNothing(t *testing.T, do func()) {
	t.Helper()
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	stop(t, must(apiserver.Start(t.Context(), apiserver.Options{}))(t))
	goroutines, files := runtime.NumGoroutine(), descriptors(t)
	do()
	eventually(t, func(context.Context) error {
		if now := runtime.NumGoroutine(); now > goroutines {
			buf := make([]byte, 1<<20)
			return fmt.Errorf("%d goroutines, %d before:\n%s", now, goroutines, buf[:runtime.Stack(buf, true)])
		}
		if now := descriptors(t); now > files {
			return fmt.Errorf("%d open files, %d before", now, files)
		}
		return nil
	})
	if left := must(os.ReadDir(tmp))(t); len(left) > 0 {
		t.Errorf("left %v", left)
	}
}

func TestStopLeavesNoGoroutineFileOrDirectory(t *testing.T) {
	leavesNothing(t, func() {
		s := must(apiserver.Start(t.Context(), apiserver.Options{}))(t)
		must(clientOf(t, s).CoreV1().Services("default").Create(t.Context(), service("s", corev1.ServiceSpec{}), metav1.CreateOptions{}))(t)
		stop(t, s)
		stop(t, s) // twice does no harm
		select {
		case <-s.Done():
		default:
			t.Error("Done is not closed after Stop")
		}
	})
}

func TestAStartCancelledAtAnyMomentLeavesNothing(t *testing.T) {
	leavesNothing(t, func() {
		for _, after := range []time.Duration{0, time.Millisecond, 5 * time.Millisecond, 15 * time.Millisecond, 30 * time.Millisecond, 60 * time.Millisecond, 120 * time.Millisecond} {
			ctx, cancel := context.WithTimeout(t.Context(), after)
			s, err := apiserver.Start(ctx, apiserver.Options{})
			cancel()
			switch {
			case err == nil:
				stop(t, s) // it was faster
			case !errors.Is(err, context.DeadlineExceeded):
				t.Errorf("cancelled after %v: %v", after, err)
			}
		}
	})
}

func TestAServerOnAllAddressesIsReachedOnThisMachine(t *testing.T) {
	s := start(t, apiserver.Options{Addr: "0.0.0.0:0"})
	if !strings.HasPrefix(s.URL(), "https://127.0.0.1:") {
		t.Errorf("URL %s", s.URL())
	}
	must(clientOf(t, s).CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{}))(t)
}

func TestDataInAGivenDirectorySurvives(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	s := must(apiserver.Start(t.Context(), apiserver.Options{Dir: dir}))(t)
	kept := must(clientOf(t, s).CoreV1().Services("default").Create(t.Context(), service("kept", corev1.ServiceSpec{}), metav1.CreateOptions{}))(t)
	stop(t, s)

	client := clientOf(t, start(t, apiserver.Options{Dir: dir}))
	again := must(client.CoreV1().Services("default").Get(t.Context(), "kept", metav1.GetOptions{}))(t)
	if again.UID != kept.UID || again.Spec.ClusterIP != kept.Spec.ClusterIP {
		t.Errorf("got %s %s, want %s %s", again.UID, again.Spec.ClusterIP, kept.UID, kept.Spec.ClusterIP)
	}
	// Its address is still held.
	_, err := client.CoreV1().Services("default").Create(t.Context(), service("thief", corev1.ServiceSpec{ClusterIP: kept.Spec.ClusterIP}), metav1.CreateOptions{})
	if !apierrors.IsInvalid(err) {
		t.Errorf("taking a stored Service's address: %v, want 422", err)
	}
}
