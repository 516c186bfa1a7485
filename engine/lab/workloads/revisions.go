package workloads

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/kubernetes"
)

// history keeps the ControllerRevisions of one StatefulSet or DaemonSet: each is
// a pod template under a number, the highest is the newest
// (k8s.io/kubernetes pkg/controller/history).
type history struct {
	client   kubernetes.Interface
	caches   *sharedCaches
	owner    metav1.Object
	kind     schema.GroupVersionKind
	template *corev1.PodTemplateSpec
	limit    *int32
}

// revisions returns the owner's revisions, oldest first.
func (h *history) revisions() ([]*appsv1.ControllerRevision, error) {
	all, err := controlledBy[*appsv1.ControllerRevision](h.caches.revisions, h.owner.GetUID(), h.owner.GetNamespace(), false)
	slices.SortFunc(all, func(a, b *appsv1.ControllerRevision) int {
		return cmp.Or(cmp.Compare(a.Revision, b.Revision), cmp.Compare(a.Name, b.Name))
	})
	return all, err
}

// current returns the revision of the owner's template as the newest of all, and
// makes it so.
func (h *history) current(ctx context.Context) (newest *appsv1.ControllerRevision, all []*appsv1.ControllerRevision, err error) {
	data, err := templatePatch(h.template)
	if err != nil {
		return nil, nil, err
	}
	if all, err = h.revisions(); err != nil {
		return nil, nil, err
	}
	number := int64(1)
	if n := len(all); n > 0 {
		number = all[n-1].Revision + 1
		if sameJSON(all[n-1].Data.Raw, data) {
			return all[n-1], all, nil
		}
	}
	client := h.client.AppsV1().ControllerRevisions(h.owner.GetNamespace())
	for _, r := range all {
		if !sameJSON(r.Data.Raw, data) {
			continue
		}
		cp := r.DeepCopy()
		cp.Revision = number
		newest, err = client.Update(ctx, cp, metav1.UpdateOptions{})
		return newest, all, err
	}
	for collision := 0; ; collision++ {
		newest, err = h.create(ctx, data, number, collision)
		if !apierrors.IsAlreadyExists(err) {
			return newest, append(all, newest), err
		}
		have, err := client.Get(ctx, revisionName(h.owner, data, collision), metav1.GetOptions{})
		if err != nil {
			return nil, nil, err
		}
		if metav1.IsControlledBy(have, h.owner) && sameJSON(have.Data.Raw, data) {
			return have, append(all, have), nil // the cache is behind
		}
	}
}

func (h *history) create(ctx context.Context, data []byte, number int64, collision int) (*appsv1.ControllerRevision, error) {
	labels := maps.Clone(h.template.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	name := revisionName(h.owner, data, collision)
	labels[appsv1.ControllerRevisionHashLabelKey] = name[len(h.owner.GetName())+1:]
	return h.client.AppsV1().ControllerRevisions(h.owner.GetNamespace()).Create(ctx, &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: h.owner.GetNamespace(), Labels: labels, Annotations: h.annotations(),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(h.owner, h.kind)},
		},
		Data:     runtime.RawExtension{Raw: data},
		Revision: number,
	}, metav1.CreateOptions{})
}

// annotations are the owner's, for kubectl rollout history's change cause.
func (h *history) annotations() map[string]string {
	out := maps.Clone(h.owner.GetAnnotations())
	delete(out, corev1.LastAppliedConfigAnnotation)
	return out
}

// truncate deletes the oldest revisions that no pod has, beyond the limit.
func (h *history) truncate(ctx context.Context, all []*appsv1.ControllerRevision, live func(*appsv1.ControllerRevision) bool) error {
	limit := 10
	if h.limit != nil {
		limit = int(*h.limit)
	}
	idle := slices.DeleteFunc(slices.Clone(all), live)
	for i := 0; i < len(idle)-limit; i++ {
		err := h.client.AppsV1().ControllerRevisions(idle[i].Namespace).Delete(ctx, idle[i].Name, metav1.DeleteOptions{})
		if ignoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}

func revisionName(owner metav1.Object, data []byte, collision int) string {
	f := fnv.New32a()
	f.Write(data)
	if collision > 0 {
		fmt.Fprint(f, collision)
	}
	return owner.GetName() + "-" + rand.SafeEncodeString(fmt.Sprint(f.Sum32()))
}

// revisionHash is the part of a revision's name that is not the owner's.
func revisionHash(r *appsv1.ControllerRevision) string {
	return r.Labels[appsv1.ControllerRevisionHashLabelKey]
}

// templatePatch is a template as revisions hold it: a patch that puts it in
// place, which is what kubectl rollout undo applies.
func templatePatch(t *corev1.PodTemplateSpec) ([]byte, error) {
	m, err := runtime.DefaultUnstructuredConverter.ToUnstructured(t)
	if err != nil {
		return nil, err
	}
	m["$patch"] = "replace"
	return json.Marshal(map[string]any{"spec": map[string]any{"template": m}})
}

// templateOf reads the template of a revision.
func templateOf(r *appsv1.ControllerRevision) (*corev1.PodTemplateSpec, error) {
	var x struct {
		Spec struct {
			Template corev1.PodTemplateSpec `json:"template"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(r.Data.Raw, &x); err != nil {
		return nil, fmt.Errorf("revision %s/%s holds no pod template: %w", r.Namespace, r.Name, err)
	}
	return &x.Spec.Template, nil
}

func sameJSON(a, b []byte) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && equality.Semantic.DeepEqual(x, y)
}
