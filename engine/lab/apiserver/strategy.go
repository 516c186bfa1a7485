package apiserver

import (
	"context"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage/names"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// rules say how objects of one type are written. Any of them may be nil.
type rules[T object] struct {
	// create clears what a client may not choose, before validation.
	create func(obj T)
	// update carries over what an update of the object itself may not change.
	update func(obj, old T)
	// statusUpdate does so for the status subresource; nil means the resource
	// has none.
	statusUpdate func(obj, old T)
	// validate judges an object on its own, after defaulting.
	validate func(obj T) field.ErrorList
	// validateUpdate judges the difference.
	validateUpdate func(obj, old T) field.ErrorList
	// warnings tell the client what the lab will not do with the object.
	warnings func(obj T) []string
	// gracePeriod returns how many seconds the object stays after a delete;
	// nil means it goes at once.
	gracePeriod func(obj T, asked *int64) int64
}

// strategy adapts rules to the generic store.
type strategy[T object] struct {
	runtime.ObjectTyper
	names.NameGenerator
	resource *resource[T]
	reset    string // the top-level field this path may not set; "" for none
	status   bool
}

func newStrategy[T object](r *resource[T], typer runtime.ObjectTyper) strategy[T] {
	s := strategy[T]{ObjectTyper: typer, NameGenerator: names.SimpleNameGenerator, resource: r}
	if r.rules.statusUpdate != nil {
		s.reset = "status"
	}
	return s
}

func (s strategy[T]) forStatus() strategy[T] {
	s.status, s.reset = true, "spec"
	return s
}

// forDelete returns a strategy that is graceful only where the rules say so:
// the generic store asks by interface.
func (s strategy[T]) forDelete() rest.RESTDeleteStrategy {
	if s.resource.rules.gracePeriod != nil {
		return gracefulStrategy[T]{s}
	}
	return s
}

func (s strategy[T]) NamespaceScoped() bool                       { return s.resource.namespaced }
func (strategy[T]) AllowCreateOnUpdate(context.Context) bool      { return false }
func (strategy[T]) AllowUnconditionalUpdate(context.Context) bool { return true }
func (strategy[T]) Canonicalize(runtime.Object)                   {}

func (s strategy[T]) DefaultGarbageCollectionPolicy(context.Context) rest.GarbageCollectionPolicy {
	return rest.DeleteDependents
}

func (s strategy[T]) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	if s.reset == "" {
		return nil
	}
	return map[fieldpath.APIVersion]*fieldpath.Set{
		fieldpath.APIVersion(s.resource.version.String()): fieldpath.NewSet(fieldpath.MakePathOrDie(s.reset)),
	}
}

func (s strategy[T]) PrepareForCreate(_ context.Context, obj runtime.Object) {
	if f := s.resource.rules.create; f != nil {
		f(obj.(T))
	}
}

func (s strategy[T]) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	f := s.resource.rules.update
	if s.status {
		f = s.resource.rules.statusUpdate
	}
	if f != nil {
		f(obj.(T), old.(T))
	}
}

func (s strategy[T]) Validate(_ context.Context, obj runtime.Object) field.ErrorList {
	o := obj.(T)
	errs := apivalidation.ValidateObjectMetaAccessor(o, s.resource.namespaced, s.resource.name, field.NewPath("metadata"))
	if f := s.resource.rules.validate; f != nil {
		errs = append(errs, f(o)...)
	}
	return errs
}

func (s strategy[T]) ValidateUpdate(ctx context.Context, obj, old runtime.Object) field.ErrorList {
	if s.status {
		return nil
	}
	errs := s.Validate(ctx, obj)
	if f := s.resource.rules.validateUpdate; f != nil {
		errs = append(errs, f(obj.(T), old.(T))...)
	}
	return errs
}

func (s strategy[T]) WarningsOnCreate(_ context.Context, obj runtime.Object) []string {
	if f := s.resource.rules.warnings; f != nil {
		return f(obj.(T))
	}
	return nil
}

func (s strategy[T]) WarningsOnUpdate(ctx context.Context, obj, _ runtime.Object) []string {
	if s.status {
		return nil
	}
	return s.WarningsOnCreate(ctx, obj)
}
