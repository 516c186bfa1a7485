package apiserver

import (
	"context"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
)

// accessREST answers `kubectl auth can-i`. Whoever holds the token may do
// everything: the lab authorizes nothing further.
type accessREST struct{}

var _ rest.Creater = accessREST{}
var _ rest.Scoper = accessREST{}
var _ rest.SingularNameProvider = accessREST{}

// New implements rest.Storage.
func (accessREST) New() runtime.Object { return &authorizationv1.SelfSubjectAccessReview{} }

// Destroy implements rest.Storage.
func (accessREST) Destroy() {}

// NamespaceScoped implements rest.Scoper.
func (accessREST) NamespaceScoped() bool { return false }

// GetSingularName implements rest.SingularNameProvider.
func (accessREST) GetSingularName() string { return "selfsubjectaccessreview" }

// Create implements rest.Creater.
func (accessREST) Create(_ context.Context, obj runtime.Object, _ rest.ValidateObjectFunc, _ *metav1.CreateOptions) (runtime.Object, error) {
	review, ok := obj.(*authorizationv1.SelfSubjectAccessReview)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("not a SelfSubjectAccessReview: %T", obj))
	}
	out := review.DeepCopy()
	out.Status = authorizationv1.SubjectAccessReviewStatus{Allowed: true, Reason: "the lab's token may do everything"}
	return out, nil
}
