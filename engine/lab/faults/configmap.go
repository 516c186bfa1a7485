package faults

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/retry"

	"github.com/kconverge/kconverge/collect"
)

// The ConfigMap that holds the faults: a key for each fault, with its value, which is
// AMOUNT or AMOUNT@TARGET, or several with ";" between them. A key that is taken away
// clears its fault.
const (
	ConfigMapName      = "kconverge-faults"
	ConfigMapNamespace = metav1.NamespaceSystem
)

const helpAnnotation = "kconverge.dev/help"

// byConfigMap is who set what somebody wrote into the ConfigMap.
const byConfigMap = "ConfigMap"

// Data gives settings as the ConfigMap holds them.
func Data(settings []Setting) map[string]string {
	out := map[string]string{}
	for _, s := range settings {
		if out[s.Name] != "" {
			out[s.Name] += "; "
		}
		out[s.Name] += s.value()
	}
	return out
}

// FromData reads them. The error joins those about what is wrong; the settings are
// what is right.
func FromData(data map[string]string) (out []Setting, wrong error) {
	for name, value := range data {
		s, err := Parse(name + "=" + value)
		wrong = errors.Join(wrong, err)
		out = append(out, slices.DeleteFunc(s, Setting.Off)...)
	}
	return merge(nil, out), wrong
}

// Write changes the faults of a running lab through its ConfigMap, and returns what
// the ConfigMap is then. Settings that cannot be right are refused; whether the lab
// has the nodes that they name, the lab itself says.
func Write(ctx context.Context, client kubernetes.Interface, settings []Setting) (*corev1.ConfigMap, error) {
	var out *corev1.ConfigMap
	maps := client.CoreV1().ConfigMaps(ConfigMapNamespace)
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		have, err := maps.Get(ctx, ConfigMapName, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			out, err = maps.Create(ctx, newConfigMap(merge(nil, settings)), metav1.CreateOptions{})
			if apierrors.IsAlreadyExists(err) {
				return apierrors.NewConflict(corev1.Resource("configmaps"), ConfigMapName, err)
			}
			return err
		}
		if err != nil {
			return err
		}
		now, _ := FromData(have.Data) // what is wrong in it goes with this
		have.Data = Data(merge(now, settings))
		out, err = maps.Update(ctx, have, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("write the faults into ConfigMap %s/%s: %w", ConfigMapNamespace, ConfigMapName, err)
	}
	return out, nil
}

func newConfigMap(settings []Setting) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Name: ConfigMapName, Namespace: ConfigMapNamespace,
			Annotations: map[string]string{helpAnnotation: "a key for each fault of the lab, with AMOUNT or AMOUNT@TARGET; kconverge lab faults lists them"},
		},
		Data: Data(settings),
	}
}

// Set changes the faults through the ConfigMap; they are in force when it returns.
// When one of the settings is wrong nothing is changed.
func (f *Faults) Set(ctx context.Context, client kubernetes.Interface, settings []Setting, by string) error {
	for _, s := range settings {
		if err := f.Check(s); err != nil {
			return err
		}
	}
	// The watch may bring it before the answer does: it is this one's all the same.
	claims := f.claim(settings, by)
	defer f.release(claims)
	cm, err := Write(ctx, client, settings)
	if err != nil {
		return err
	}
	f.take(cm)
	return nil
}

// claim is what somebody in this program is writing into the ConfigMap, so that what
// comes of it is told as that one's, and what somebody else wrote there is not.
type claim struct {
	Setting
	by string
}

func (f *Faults) claim(settings []Setting, by string) []*claim {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []*claim
	for _, s := range settings {
		out = append(out, &claim{s, by})
	}
	f.claims = append(f.claims, out...)
	return out
}

func (f *Faults) release(claims []*claim) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.claims = slices.DeleteFunc(f.claims, func(c *claim) bool { return slices.Contains(claims, c) })
}

// author is who began or ended a fault that the ConfigMap says is set to s, or is not
// set any more. The caller holds f.mu.
func (f *Faults) author(s Setting, ended bool) string {
	for _, c := range f.claims {
		same := c.Name == s.Name && c.Target == s.Target
		switch {
		case ended && (same && c.Amount != s.Amount || c.Name == s.Name && c.Target == "" && c.Off()),
			!ended && same && c.Amount == s.Amount:
			return c.by
		}
	}
	return byConfigMap
}

// Publish makes the ConfigMap, with what is in force.
func (f *Faults) Publish(ctx context.Context, client kubernetes.Interface) error {
	f.mu.Lock()
	settings := f.settings()
	f.mu.Unlock()
	_, err := Write(ctx, client, settings)
	return err
}

// Follow keeps what is in force as the ConfigMap says, until ctx ends.
func (f *Faults) Follow(ctx context.Context, client kubernetes.Interface) error {
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(ConfigMapNamespace),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) {
			o.FieldSelector = fields.OneTermEqualSelector("metadata.name", ConfigMapName).String()
		}))
	informer := factory.Core().V1().ConfigMaps().Informer()
	take := func(obj any) {
		if cm, ok := obj.(*corev1.ConfigMap); ok {
			f.take(cm)
		}
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    take,
		UpdateFunc: func(_, obj any) { take(obj) },
		DeleteFunc: func(obj any) {
			if t, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = t.Obj
			}
			if cm, ok := obj.(*corev1.ConfigMap); ok {
				gone := cm.DeepCopy()
				gone.Data = nil
				f.take(gone)
			}
		},
	})
	if err != nil {
		return fmt.Errorf("follow the faults: %w", err)
	}
	factory.StartWithContext(ctx)
	defer factory.Shutdown()
	<-ctx.Done()
	return nil
}

// take puts in force what the ConfigMap says, unless a later one was taken already.
// What is wrong in it is told and left out.
func (f *Faults) take(cm *corev1.ConfigMap) {
	version, _ := strconv.ParseUint(cm.ResourceVersion, 10, 64) // the lab's are numbers
	f.mu.Lock()
	defer f.mu.Unlock()
	if version != 0 && version <= f.version {
		return
	}
	f.version = version
	settings, wrong := FromData(cm.Data)
	settings = slices.DeleteFunc(settings, func(s Setting) bool {
		err := f.Check(s)
		wrong = errors.Join(wrong, err)
		return err != nil
	})
	f.replace(settings, f.author)
	if wrong != nil {
		text := strings.ReplaceAll(wrong.Error(), "\n", "; ")
		f.tell(f.o.Clock.Now(), &collect.Fault{Refused: text, By: byConfigMap})
	}
}

// CheckConfigMap says what is wrong in the ConfigMap of the faults, nil for nothing and
// for other ConfigMaps.
func (f *Faults) CheckConfigMap(cm *corev1.ConfigMap) error {
	if cm.Name != ConfigMapName || cm.Namespace != ConfigMapNamespace {
		return nil
	}
	settings, wrong := FromData(cm.Data)
	for _, s := range settings {
		wrong = errors.Join(wrong, f.Check(s))
	}
	return wrong
}
