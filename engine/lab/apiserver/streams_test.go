package apiserver_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestStreamsThatTheLabDoesNotHaveAreRefusedByNameAndNotAsAMissingPath(t *testing.T) {
	_, client := startClient(t)
	ctx := t.Context()
	must(client.CoreV1().Pods("default").Create(ctx, pod("p"), metav1.CreateOptions{}))(t)
	must(client.CoreV1().Services("default").Create(ctx, service("web", corev1.ServiceSpec{}), metav1.CreateOptions{}))(t)
	must(client.CoreV1().Nodes().Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}, metav1.CreateOptions{}))(t)
	const inDefault = "/api/v1/namespaces/default"
	for path, says := range map[string]string{
		inDefault + "/pods/p/exec":                     "nothing to run a command in or to attach to in pod p",
		inDefault + "/pods/p/attach":                   "nothing to run a command in or to attach to in pod p",
		inDefault + "/pods/p/portforward":              "the lab forwards no ports: pod p",
		inDefault + "/pods/p/proxy/":                   "kubectl describe pod/p",
		inDefault + "/services/http:web:80/proxy/path": "kubectl describe service/web",
		"/api/v1/nodes/n/proxy/metrics":                "kubectl describe node/n",
	} {
		err := client.CoreV1().RESTClient().Get().AbsPath(path).Do(ctx).Error()
		if !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: got %v, want a bad request that says %q", path, err, says)
		}
	}
	err := client.CoreV1().RESTClient().Post().AbsPath(inDefault + "/pods/nobody/exec").Do(ctx).Error()
	if !apierrors.IsNotFound(err) || !strings.Contains(err.Error(), "nobody") {
		t.Errorf("exec in a pod that does not exist: %v", err)
	}
}
