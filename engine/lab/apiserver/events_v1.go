package apiserver

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"
)

// events.k8s.io/v1 is another spelling of the same stored events: client-go's
// newer recorder writes it, kubectl reads v1. The conversion follows
// pkg/apis/events/v1 of k8s.io/kubernetes.

// eventFieldNames maps field selectors of events.k8s.io/v1 to the stored names.
var eventFieldNames = map[string]string{
	"metadata.name": "metadata.name", "metadata.namespace": "metadata.namespace",
	"reason": "reason", "type": "type", "reportingController": "reportingComponent",
	"regarding.kind": "involvedObject.kind", "regarding.namespace": "involvedObject.namespace",
	"regarding.name": "involvedObject.name", "regarding.uid": "involvedObject.uid",
	"regarding.apiVersion": "involvedObject.apiVersion", "regarding.resourceVersion": "involvedObject.resourceVersion",
	"regarding.fieldPath": "involvedObject.fieldPath",
}

func addEventsV1(s *runtime.Scheme) error {
	return errors.Join(
		eventsv1.AddToScheme(s),
		s.AddFieldLabelConversionFunc(eventsv1.SchemeGroupVersion.WithKind("Event"), func(label, value string) (string, string, error) {
			stored, ok := eventFieldNames[label]
			if !ok {
				return "", "", fmt.Errorf("field label not supported: %s", label)
			}
			return stored, value, nil
		}),
		convert(s, eventFromV1), convert(s, eventToV1),
		convert(s, func(in *eventsv1.EventList, out *corev1.EventList) {
			out.ListMeta, out.Items = in.ListMeta, each(in.Items, eventFromV1)
		}),
		convert(s, func(in *corev1.EventList, out *eventsv1.EventList) {
			out.ListMeta, out.Items = in.ListMeta, each(in.Items, eventToV1)
		}),
	)
}

func convert[I, O any](s *runtime.Scheme, f func(*I, *O)) error {
	return s.AddConversionFunc((*I)(nil), (*O)(nil), func(in, out any, _ conversion.Scope) error {
		f(in.(*I), out.(*O))
		return nil
	})
}

func each[I, O any](in []I, f func(*I, *O)) []O {
	if in == nil {
		return nil
	}
	out := make([]O, len(in))
	for i := range in {
		f(&in[i], &out[i])
	}
	return out
}

func eventFromV1(in *eventsv1.Event, out *corev1.Event) {
	*out = corev1.Event{
		ObjectMeta: in.ObjectMeta, InvolvedObject: in.Regarding, Related: in.Related,
		Reason: in.Reason, Message: in.Note, Type: in.Type, Action: in.Action,
		EventTime: in.EventTime, ReportingController: in.ReportingController, ReportingInstance: in.ReportingInstance,
		Source: in.DeprecatedSource, FirstTimestamp: in.DeprecatedFirstTimestamp,
		LastTimestamp: in.DeprecatedLastTimestamp, Count: in.DeprecatedCount,
	}
	if in.Series != nil {
		out.Series = &corev1.EventSeries{Count: in.Series.Count, LastObservedTime: in.Series.LastObservedTime}
	}
}

func eventToV1(in *corev1.Event, out *eventsv1.Event) {
	*out = eventsv1.Event{
		ObjectMeta: in.ObjectMeta, Regarding: in.InvolvedObject, Related: in.Related,
		Reason: in.Reason, Note: in.Message, Type: in.Type, Action: in.Action,
		EventTime: in.EventTime, ReportingController: in.ReportingController, ReportingInstance: in.ReportingInstance,
		DeprecatedSource: in.Source, DeprecatedFirstTimestamp: in.FirstTimestamp,
		DeprecatedLastTimestamp: in.LastTimestamp, DeprecatedCount: in.Count,
	}
	if in.Series != nil {
		out.Series = &eventsv1.EventSeries{Count: in.Series.Count, LastObservedTime: in.Series.LastObservedTime}
	}
}
