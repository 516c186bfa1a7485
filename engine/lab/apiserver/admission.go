package apiserver

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/namespace/lifecycle"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
)

// firstNamespaces exist from the start and cannot be deleted.
var firstNamespaces = []string{metav1.NamespaceDefault, metav1.NamespaceSystem}

// newNamespaceAdmission refuses objects for namespaces that do not exist or are
// being deleted.
func newNamespaceAdmission(client kubernetes.Interface, factory informers.SharedInformerFactory) (admission.Interface, error) {
	l, err := lifecycle.NewLifecycle(sets.New(firstNamespaces...))
	if err != nil {
		return nil, fmt.Errorf("making the namespace checks: %w", err)
	}
	l.SetExternalKubeClientSet(client)
	l.SetExternalKubeInformerFactory(factory)
	if err := l.ValidateInitialization(); err != nil {
		return nil, fmt.Errorf("making the namespace checks: %w", err)
	}
	return l, nil
}
