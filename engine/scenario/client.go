package scenario

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
)

// agent is how the scenario's client presents itself: as kubectl, whose requests the
// faults of that client meet.
const agent = "kubectl/scenario"

// manager owns the fields that apply steps set.
const manager = "kconverge-scenario"

var patchTypes = map[string]types.PatchType{
	"strategic": types.StrategicMergePatchType, "merge": types.MergePatchType, "json": types.JSONPatchType,
}

// client does to the cluster what kubectl would.
type client struct {
	dynamic dynamic.Interface
	mapper  meta.RESTMapper
}

func newClient(kubeconfig []byte) (*client, error) {
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		return nil, err
	}
	config.UserAgent, config.QPS = agent, -1
	config.WarningHandler = rest.NoWarnings{}
	dyn, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	disc, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	cached := memory.NewMemCacheClient(disc)
	return &client{dyn, restmapper.NewShortcutExpander(restmapper.NewDeferredDiscoveryRESTMapper(cached), cached, nil)}, nil
}

// resource finds what a person calls a kind.
func (c *client) resource(kind, namespace string) (dynamic.ResourceInterface, error) {
	gvr, err := c.mapper.ResourceFor(schema.GroupVersionResource{Resource: kind})
	if err != nil {
		return nil, err
	}
	gvk, err := c.mapper.KindFor(gvr)
	if err != nil {
		return nil, err
	}
	return c.of(gvk, namespace)
}

func (c *client) of(gvk schema.GroupVersionKind, namespace string) (dynamic.ResourceInterface, error) {
	mapping, err := c.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return nil, err
	}
	if mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		return c.dynamic.Resource(mapping.Resource), nil
	}
	return c.dynamic.Resource(mapping.Resource).Namespace(namespace), nil
}

// apply makes or changes an object so that it is as the manifest says.
func (c *client) apply(ctx context.Context, u *unstructured.Unstructured) error {
	namespace := u.GetNamespace()
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	r, err := c.of(u.GroupVersionKind(), namespace)
	if err == nil {
		_, err = r.Apply(ctx, u.GetName(), u, metav1.ApplyOptions{FieldManager: manager, Force: true})
	}
	if err != nil {
		return fmt.Errorf("apply %s %s: %w", u.GetKind(), u.GetName(), err)
	}
	return nil
}

// run carries out a command line.
func (c *client) run(ctx context.Context, cmd *command) error {
	r, err := c.resource(cmd.kind, cmd.namespace)
	if err != nil {
		return fmt.Errorf("kubectl %s: %w", cmd.text, err)
	}
	if cmd.verb == "delete" && len(cmd.names) == 0 {
		err = r.DeleteCollection(ctx, cmd.deletion(), metav1.ListOptions{LabelSelector: cmd.selector})
	}
	names := cmd.names
	if len(names) == 0 && cmd.verb != "delete" {
		list, e := r.List(ctx, metav1.ListOptions{LabelSelector: cmd.selector})
		if err = e; err == nil {
			for _, u := range list.Items {
				names = append(names, u.GetName())
			}
		}
	}
	for _, name := range names {
		if err == nil {
			err = c.one(ctx, r, cmd, name)
		}
	}
	if err != nil {
		return fmt.Errorf("kubectl %s: %w", cmd.text, err)
	}
	return nil
}

func (cmd *command) deletion() metav1.DeleteOptions {
	background := metav1.DeletePropagationBackground
	o := metav1.DeleteOptions{PropagationPolicy: &background}
	if cmd.grace >= 0 {
		o.GracePeriodSeconds = &cmd.grace
	}
	return o
}

// one carries out a command line about one object.
func (c *client) one(ctx context.Context, r dynamic.ResourceInterface, cmd *command, name string) error {
	patch := func(kind types.PatchType, body any, sub ...string) error {
		b, err := json.Marshal(body)
		if err != nil {
			return err
		}
		_, err = r.Patch(ctx, name, kind, b, metav1.PatchOptions{}, sub...)
		return err
	}
	type object = map[string]any
	switch cmd.verb {
	case "delete":
		return r.Delete(ctx, name, cmd.deletion())
	case "scale":
		return patch(types.MergePatchType, object{"spec": object{"replicas": cmd.replicas}}, "scale")
	case "restart":
		at := object{"kubectl.kubernetes.io/restartedAt": time.Now().Format(time.RFC3339Nano)}
		return patch(types.StrategicMergePatchType, object{"spec": object{"template": object{"metadata": object{"annotations": at}}}})
	case "set-image":
		var list []any
		for container, image := range cmd.set {
			list = append(list, object{"name": container, "image": image})
		}
		return patch(types.StrategicMergePatchType, object{"spec": object{"template": object{"spec": object{"containers": list}}}})
	case "label":
		return patch(types.MergePatchType, object{"metadata": object{"labels": cmd.set}})
	case "annotate":
		return patch(types.MergePatchType, object{"metadata": object{"annotations": cmd.set}})
	case "cordon", "uncordon":
		return patch(types.MergePatchType, object{"spec": object{"unschedulable": cmd.verb == "cordon"}})
	case "patch":
		var sub []string
		if cmd.subresource != "" {
			sub = []string{cmd.subresource}
		}
		return patch(patchTypes[cmd.patchType], json.RawMessage(cmd.patch), sub...)
	}
	return fmt.Errorf("%s is not known", cmd.verb)
}
