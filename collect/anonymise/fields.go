package anonymise

import (
	"net/netip"
	"reflect"

	"github.com/kconverge/kconverge/collect"
)

// decision says what becomes of a string.
type decision func(*Anonymiser, string) string

func nameOf(k kindOfName) decision {
	return func(a *Anonymiser, s string) string { return a.names.of(k, s) }
}

var (
	theNode      = nameOf(node)
	theNamespace = nameOf(namespace)
	theService   = nameOf(service)
	thePod       = nameOf(pod)
	theObject    = nameOf(object)
	thePort      = nameOf(port)
	theZone      = nameOf(zone)
	theUID       = nameOf(uid)
	theID        = nameOf(id)
	theValue     = nameOf(value)
	aKnownWord   = (*Anonymiser).known
	aText        = (*Anonymiser).text
	aVersion     = (*Anonymiser).version
	aFormat      = (*Anonymiser).format
	aSource      = (*Anonymiser).source
	// apart: rewrite or tidy decides, by what stands beside it.
	apart decision = func(a *Anonymiser, s string) string { return a.names.of(word, s) }
)

// byType decides about types whose every string is alike.
var byType = map[reflect.Type]decision{
	reflect.TypeFor[collect.Protocol]():        aKnownWord,
	reflect.TypeFor[collect.Family]():          aKnownWord,
	reflect.TypeFor[collect.Policy]():          aKnownWord,
	reflect.TypeFor[collect.FrontendKind]():    aKnownWord,
	reflect.TypeFor[collect.SourceStateName](): aKnownWord,
	reflect.TypeFor[collect.Op]():              aKnownWord,
	reflect.TypeFor[collect.SourceID]():        aSource,
}

// fields decides about every other string, by the payload's wire name and the names
// of the fields that lead there. Lists and maps have no name of their own; of
// map[string]string these are the values, and the keys are labels'.
var fields = map[string]decision{
	"pod.Labels":                 theValue,
	"pod.Node":                   theNode,
	"pod.Phase":                  aKnownWord,
	"pod.Ports.Name":             thePort,
	"pod.Owner.Kind":             aKnownWord,
	"pod.Owner.Name":             theObject,
	"pod.Owner.UID":              theUID,
	"pod.Scheduled.Reason":       aKnownWord,
	"pod.Initialized.Reason":     aKnownWord,
	"pod.ContainersReady.Reason": aKnownWord,
	"pod.Ready.Reason":           aKnownWord,
	"pod.Disruption.Reason":      aKnownWord,
	"pod.Revision":               theValue,
	"pod.Waiting":                aKnownWord,

	"service.Labels":              theValue,
	"service.Kind":                aKnownWord,
	"service.Selector":            theValue,
	"service.Ports.Name":          thePort,
	"service.Ports.TargetName":    thePort,
	"service.InternalPolicy":      aKnownWord,
	"service.ExternalPolicy":      aKnownWord,
	"service.SessionAffinity":     aKnownWord,
	"service.TrafficDistribution": aKnownWord,
	"service.ProxyName":           theValue,

	"endpointslice.Service":             theService,
	"endpointslice.ManagedBy":           aKnownWord,
	"endpointslice.Ports.Name":          thePort,
	"endpointslice.Endpoints.Node":      theNode,
	"endpointslice.Endpoints.Zone":      theZone,
	"endpointslice.Endpoints.PodName":   thePod,
	"endpointslice.Endpoints.PodUID":    theUID,
	"endpointslice.Endpoints.HintZones": theZone,
	"endpointslice.Endpoints.HintNodes": theNode,

	"endpoints.Addresses.PodName":    thePod,
	"endpoints.Addresses.PodUID":     theUID,
	"endpoints.Addresses.Ports.Name": thePort,

	"node.Labels":       theValue,
	"node.Zone":         theZone,
	"node.Ready.Reason": aKnownWord,
	"node.ProxyMode":    aKnownWord,

	"workload.Owner.Kind":     aKnownWord,
	"workload.Owner.Name":     theObject,
	"workload.Owner.UID":      theUID,
	"workload.Selector":       theValue,
	"workload.Revision":       theValue,
	"workload.TemplateLabels": theValue,

	"kubeevent.Regarding.Kind":      aKnownWord,
	"kubeevent.Regarding.Namespace": theNamespace,
	"kubeevent.Regarding.Name":      theObject,
	"kubeevent.UID":                 theUID,
	"kubeevent.Reason":              aKnownWord,
	"kubeevent.Message":             apart,
	"kubeevent.EventType":           aKnownWord,
	"kubeevent.Component":           aKnownWord,

	"rules.Node":            theNode,
	"rules.Layout":          aKnownWord,
	"rules.NoLayout":        aText,
	"rules.Process":         aKnownWord,
	"rules.Ports.Namespace": theNamespace,
	"rules.Ports.Service":   theService,
	"rules.Ports.Port":      thePort,
	"rules.Unknown":         aText,

	"keyframe.Node":            theNode,
	"keyframe.Layout":          aKnownWord,
	"keyframe.NoLayout":        aText,
	"keyframe.Ports.Namespace": theNamespace,
	"keyframe.Ports.Service":   theService,
	"keyframe.Ports.Port":      thePort,
	"keyframe.Ports.Digest":    apart,
	"keyframe.Unknown":         aText,

	"rulespast.Node":              theNode,
	"rulespast.Changes.Namespace": theNamespace,
	"rulespast.Changes.Service":   theService,
	"rulespast.Gaps.Why":          aText,

	"vouch.How":          aKnownWord,
	"sourcestate.Detail": aText,
	"gap.Why":            aText,

	"session.Format":       aFormat,
	"session.Kind":         aKnownWord,
	"session.Name":         theObject,
	"session.Version":      aVersion,
	"session.Tool":         aVersion,
	"session.ControlPlane": aText,
	"session.Rules":        aText,
	"session.Namespaces":   theNamespace,

	"action.Namespace": theNamespace,
	"action.Service":   theService,
	"action.Text":      aText,
	"action.By":        aText,

	"reconcile.Controller": aKnownWord,
	"reconcile.Step":       aKnownWord,
	"reconcile.Detail":     aText,

	"sync.Node":   theNode,
	"sync.Step":   aKnownWord,
	"sync.Detail": aText,

	"agent.Node":       theNode,
	"agent.Version":    aVersion,
	"agent.Instance":   theID,
	"agent.Clock.Boot": theID,

	"proxy.Node":    theNode,
	"proxy.Why":     aText,
	"proxy.Mode":    aKnownWord,
	"proxy.Version": aVersion,

	"narration.Scenario": aText,
	"narration.Chapter":  aText,
	"narration.Text":     aText,
	"narration.Next":     aText,
	"narration.Verdict":  aText,

	"fault.Name":    aKnownWord,
	"fault.Amount":  aText,
	"fault.Target":  aText,
	"fault.Refused": aText,
	"fault.By":      aText,

	"connections.Node":         theNode,
	"connections.Answered.UID": theUID,
	"connection-failed.Node":   theNode,
	"connection-failed.Result": aText,

	"clockbound.How": aKnownWord,
}

// Types of addresses, which replace each other as they are.
var (
	addrType     = reflect.TypeFor[netip.Addr]()
	addrPortType = reflect.TypeFor[netip.AddrPort]()
	prefixType   = reflect.TypeFor[netip.Prefix]()
)
