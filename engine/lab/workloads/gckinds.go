package workloads

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	appsclient "k8s.io/client-go/kubernetes/typed/apps/v1"
	batchclient "k8s.io/client-go/kubernetes/typed/batch/v1"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	discoveryclient "k8s.io/client-go/kubernetes/typed/discovery/v1"
	"k8s.io/client-go/tools/cache"
)

// gcKind is how the garbage collector reaches the objects of one kind.
type gcKind struct {
	kind     string
	informer cache.SharedIndexInformer
	get      func(ctx context.Context, namespace, name string) (metav1.Object, error)
	delete   func(ctx context.Context, namespace, name string, o metav1.DeleteOptions) error
	patch    func(ctx context.Context, namespace, name string, t types.PatchType, data []byte) error
}

// cached returns the object that the informer has, or nil.
func (k *gcKind) cached(namespace, name string) metav1.Object {
	obj, ok, err := k.informer.GetIndexer().GetByKey(cache.NewObjectName(namespace, name).String())
	if err != nil || !ok {
		return nil
	}
	o, _ := obj.(metav1.Object)
	return o
}

// objectClient is what the typed clients of client-go have in common.
type objectClient[T metav1.Object] interface {
	Get(ctx context.Context, name string, o metav1.GetOptions) (T, error)
	Delete(ctx context.Context, name string, o metav1.DeleteOptions) error
	Patch(ctx context.Context, name string, t types.PatchType, data []byte, o metav1.PatchOptions, subresources ...string) (T, error)
}

func gcKindOf[T metav1.Object, C objectClient[T]](kind string, informer cache.SharedIndexInformer, in func(namespace string) C) *gcKind {
	return &gcKind{
		kind: kind, informer: informer,
		get: func(ctx context.Context, namespace, name string) (metav1.Object, error) {
			return in(namespace).Get(ctx, name, metav1.GetOptions{})
		},
		delete: func(ctx context.Context, namespace, name string, o metav1.DeleteOptions) error {
			return in(namespace).Delete(ctx, name, o)
		},
		patch: func(ctx context.Context, namespace, name string, t types.PatchType, data []byte) error {
			_, err := in(namespace).Patch(ctx, name, t, data, metav1.PatchOptions{})
			return err
		},
	}
}

// gcKinds are the kinds that own or are owned in the lab.
func gcKinds(c kubernetes.Interface, s *sharedCaches) map[string]*gcKind {
	out := map[string]*gcKind{}
	for _, k := range []*gcKind{
		gcKindOf[*appsv1.Deployment, appsclient.DeploymentInterface]("Deployment", s.deployments, c.AppsV1().Deployments),
		gcKindOf[*appsv1.ReplicaSet, appsclient.ReplicaSetInterface]("ReplicaSet", s.replicaSets, c.AppsV1().ReplicaSets),
		gcKindOf[*appsv1.StatefulSet, appsclient.StatefulSetInterface]("StatefulSet", s.statefulSets, c.AppsV1().StatefulSets),
		gcKindOf[*appsv1.DaemonSet, appsclient.DaemonSetInterface]("DaemonSet", s.daemonSets, c.AppsV1().DaemonSets),
		gcKindOf[*appsv1.ControllerRevision, appsclient.ControllerRevisionInterface]("ControllerRevision", s.revisions, c.AppsV1().ControllerRevisions),
		gcKindOf[*batchv1.Job, batchclient.JobInterface]("Job", s.jobs, c.BatchV1().Jobs),
		gcKindOf[*corev1.Pod, coreclient.PodInterface]("Pod", s.pods, c.CoreV1().Pods),
		gcKindOf[*corev1.Service, coreclient.ServiceInterface]("Service", s.services, c.CoreV1().Services),
		gcKindOf[*corev1.Endpoints, coreclient.EndpointsInterface]("Endpoints", s.endpoints, c.CoreV1().Endpoints), //nolint:staticcheck // they own mirrored slices
		gcKindOf[*discoveryv1.EndpointSlice, discoveryclient.EndpointSliceInterface]("EndpointSlice", s.slices, c.DiscoveryV1().EndpointSlices),
	} {
		out[k.kind] = k
	}
	return out
}
