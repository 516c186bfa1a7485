package apiserver

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
)

// eventLifetime is kube-apiserver's --event-ttl.
const eventLifetime = time.Hour

func events() *resource[*corev1.Event] {
	involved := func(get func(corev1.ObjectReference) string) func(*corev1.Event) string {
		return func(e *corev1.Event) string { return get(e.InvolvedObject) }
	}
	return &resource[*corev1.Event]{
		version: corev1.SchemeGroupVersion, kind: "Event", plural: "events", singular: "event",
		short: []string{"ev"}, namespaced: true,
		name:      apivalidation.NameIsDNSSubdomain,
		newObject: func() *corev1.Event { return &corev1.Event{} },
		newList:   func() runtime.Object { return &corev1.EventList{} },
		fields: map[string]func(*corev1.Event) string{
			"involvedObject.kind":            involved(func(o corev1.ObjectReference) string { return o.Kind }),
			"involvedObject.namespace":       involved(func(o corev1.ObjectReference) string { return o.Namespace }),
			"involvedObject.name":            involved(func(o corev1.ObjectReference) string { return o.Name }),
			"involvedObject.uid":             involved(func(o corev1.ObjectReference) string { return string(o.UID) }),
			"involvedObject.apiVersion":      involved(func(o corev1.ObjectReference) string { return o.APIVersion }),
			"involvedObject.resourceVersion": involved(func(o corev1.ObjectReference) string { return o.ResourceVersion }),
			"involvedObject.fieldPath":       involved(func(o corev1.ObjectReference) string { return o.FieldPath }),
			"reason":                         func(e *corev1.Event) string { return e.Reason },
			"reportingComponent":             func(e *corev1.Event) string { return e.ReportingController },
			"source":                         eventSource,
			"type":                           func(e *corev1.Event) string { return e.Type },
		},
		columns: []column[*corev1.Event]{
			{name: "Last Seen", cell: func(e *corev1.Event, now time.Time) any { return since(eventLast(e), now) }},
			col("Type", func(e *corev1.Event) any { return e.Type }),
			col("Reason", func(e *corev1.Event) any { return e.Reason }),
			col("Object", func(e *corev1.Event) any {
				return strings.TrimSuffix(strings.ToLower(e.InvolvedObject.Kind)+"/"+e.InvolvedObject.Name, "/")
			}),
			wide("Subobject", func(e *corev1.Event) any { return e.InvolvedObject.FieldPath }),
			wide("Source", func(e *corev1.Event) any { return eventSourceCell(e) }),
			col("Message", func(e *corev1.Event) any { return strings.TrimSpace(e.Message) }),
			{name: "First Seen", wide: true, cell: func(e *corev1.Event, now time.Time) any { return since(eventFirst(e), now) }},
			wide("Count", func(e *corev1.Event) any { return eventCount(e) }),
			wide("Name", func(e *corev1.Event) any { return e.Name }),
		},
		rules: rules[*corev1.Event]{
			validate: func(e *corev1.Event) (errs field.ErrorList) {
				// Events about cluster-wide objects live in "default".
				if ns := e.InvolvedObject.Namespace; ns != "" && ns != e.Namespace {
					errs = append(errs, field.Invalid(field.NewPath("involvedObject", "namespace"), ns, "does not match event.namespace"))
				}
				return errs
			},
		},
		adjust: func(s *genericregistry.Store) {
			s.TTLFunc = func(runtime.Object, uint64, bool) (uint64, error) { return uint64(eventLifetime.Seconds()), nil }
		},
	}
}

func eventSource(e *corev1.Event) string {
	if e.Source.Component != "" {
		return e.Source.Component
	}
	return e.ReportingController
}

func eventSourceCell(e *corev1.Event) string {
	host := e.Source.Host
	if host == "" {
		host = e.ReportingInstance
	}
	if host == "" {
		return eventSource(e)
	}
	return fmt.Sprintf("%s, %s", eventSource(e), host)
}

func eventFirst(e *corev1.Event) time.Time {
	if e.FirstTimestamp.IsZero() {
		return e.EventTime.Time
	}
	return e.FirstTimestamp.Time
}

func eventLast(e *corev1.Event) time.Time {
	switch {
	case e.Series != nil:
		return e.Series.LastObservedTime.Time
	case e.LastTimestamp.IsZero():
		return eventFirst(e)
	default:
		return e.LastTimestamp.Time
	}
}

func eventCount(e *corev1.Event) int64 {
	switch {
	case e.Series != nil:
		return int64(e.Series.Count)
	case e.Count == 0:
		return 1
	default:
		return int64(e.Count)
	}
}
