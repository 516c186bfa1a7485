package apiserver

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// subresource is another way to update the same stored object, under other
// rules: status and finalize.
type subresource struct {
	store *genericregistry.Store
}

var _ rest.Patcher = &subresource{}
var _ rest.ResetFieldsStrategy = &subresource{}
var _ rest.TableConvertor = &subresource{}

// New implements rest.Storage.
func (r *subresource) New() runtime.Object { return r.store.New() }

// Destroy implements rest.Storage; the store belongs to the resource itself.
func (r *subresource) Destroy() {}

// Get implements rest.Getter.
func (r *subresource) Get(ctx context.Context, name string, o *metav1.GetOptions) (runtime.Object, error) {
	return r.store.Get(ctx, name, o)
}

// Update implements rest.Updater; a subresource never creates.
func (r *subresource) Update(ctx context.Context, name string, in rest.UpdatedObjectInfo, create rest.ValidateObjectFunc, update rest.ValidateObjectUpdateFunc, _ bool, o *metav1.UpdateOptions) (runtime.Object, bool, error) {
	return r.store.Update(ctx, name, in, create, update, false, o)
}

// GetResetFields implements rest.ResetFieldsStrategy.
func (r *subresource) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return r.store.GetResetFields()
}

// ConvertToTable implements rest.TableConvertor.
func (r *subresource) ConvertToTable(ctx context.Context, o, options runtime.Object) (*metav1.Table, error) {
	return r.store.ConvertToTable(ctx, o, options)
}
