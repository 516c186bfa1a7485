package apiserver

import (
	"fmt"
	"slices"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"
)

// object is an API object of a known Go type.
type object interface {
	runtime.Object
	metav1.Object
}

// resource says everything about one API resource. Files named after a
// resource define one each; stores are made from it.
type resource[T object] struct {
	version          schema.GroupVersion
	kind             string
	plural, singular string
	short            []string
	inAll            bool // kubectl get all
	namespaced       bool
	name             apivalidation.ValidateNameFunc
	newObject        func() T
	newList          func() runtime.Object
	// fields are the field selectors beside metadata.name and .namespace.
	fields  map[string]func(T) string
	columns []column[T]
	rules   rules[T]

	// adjust changes the store beyond the rules; may be nil.
	adjust func(*genericregistry.Store)
	// main replaces the store that serves the resource; may be nil.
	main func(*store) rest.Storage
	// subresources are served below the resource beside "status"; may be nil.
	// status is nil when the resource has none.
	subresources func(main, status *genericregistry.Store) map[string]rest.Storage
}

// resourceDefinition is a resource of any type.
type resourceDefinition interface {
	addToScheme(*runtime.Scheme) error
	groupVersion() schema.GroupVersion
	isNamespaced() bool
	pluralName() string
	// storage makes the stores, by path below the group version.
	storage(*apiScheme, generic.RESTOptionsGetter, clock.PassiveClock) (map[string]rest.Storage, error)
}

func (r *resource[T]) groupVersion() schema.GroupVersion { return r.version }
func (r *resource[T]) isNamespaced() bool                { return r.namespaced }
func (r *resource[T]) pluralName() string                { return r.plural }

// addToScheme registers the field selectors that may be asked for.
func (r *resource[T]) addToScheme(s *runtime.Scheme) error {
	return s.AddFieldLabelConversionFunc(r.version.WithKind(r.kind), func(label, value string) (string, string, error) {
		if _, ok := r.fields[label]; ok || label == "metadata.name" || label == "metadata.namespace" && r.namespaced {
			return label, value, nil
		}
		return "", "", fmt.Errorf("field label not supported: %s", label)
	})
}

// attributes returns what selectors match against.
func (r *resource[T]) attributes(obj runtime.Object) (labels.Set, fields.Set, error) {
	o, ok := obj.(T)
	if !ok {
		return nil, nil, fmt.Errorf("%s cannot hold a %T", r.plural, obj)
	}
	set := make(fields.Set, len(r.fields)+2)
	set["metadata.name"] = o.GetName()
	if r.namespaced {
		set["metadata.namespace"] = o.GetNamespace()
	}
	for name, value := range r.fields {
		set[name] = value(o)
	}
	return labels.Set(o.GetLabels()), set, nil
}

// store is a generic store with the names kubectl may use for it.
type store struct {
	*genericregistry.Store
	short, categories []string
}

// ShortNames implements rest.ShortNamesProvider.
func (s *store) ShortNames() []string { return slices.Clone(s.short) }

// Categories implements rest.CategoriesProvider.
func (s *store) Categories() []string { return slices.Clone(s.categories) }

func (r *resource[T]) storage(scheme *apiScheme, options generic.RESTOptionsGetter, clk clock.PassiveClock) (map[string]rest.Storage, error) {
	strategy := newStrategy(r, scheme)
	group := r.version.Group
	s := &genericregistry.Store{
		NewFunc:                   func() runtime.Object { return r.newObject() },
		NewListFunc:               r.newList,
		DefaultQualifiedResource:  schema.GroupResource{Group: group, Resource: r.plural},
		SingularQualifiedResource: schema.GroupResource{Group: group, Resource: r.singular},
		CreateStrategy:            strategy,
		UpdateStrategy:            strategy,
		DeleteStrategy:            strategy.forDelete(),
		ResetFieldsStrategy:       strategy,
		ReturnDeletedObject:       true,
		TableConvertor:            table[T]{columns: r.columns, clock: clk},
	}
	if r.adjust != nil {
		r.adjust(s)
	}
	if err := s.CompleteWithOptions(&generic.StoreOptions{RESTOptions: options, AttrFunc: r.attributes}); err != nil {
		return nil, fmt.Errorf("making the store of %s: %w", r.plural, err)
	}
	named := &store{Store: s, short: r.short}
	if r.inAll {
		named.categories = []string{"all"}
	}
	out := map[string]rest.Storage{r.plural: named}
	switch {
	case r.main != nil:
		out[r.plural] = r.main(named)
	case r.rules.gracePeriod != nil:
		out[r.plural] = gracefulREST{named}
	}
	var status *genericregistry.Store
	if r.rules.statusUpdate != nil {
		status = new(*s)
		asStatus := strategy.forStatus()
		status.UpdateStrategy, status.ResetFieldsStrategy = asStatus, asStatus
		status.BeginUpdate = nil // allocations belong to the spec
		out[r.plural+"/status"] = &subresource{store: status}
	}
	if r.subresources != nil {
		for path, sub := range r.subresources(s, status) {
			out[r.plural+"/"+path] = sub
		}
	}
	return out, nil
}
