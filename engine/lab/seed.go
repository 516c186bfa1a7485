package lab

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
)

// SeedService is the Service that a seeded lab starts with, as namespace/name.
const SeedService = metav1.NamespaceDefault + "/web"

const (
	seedName     = "web"
	seedReplicas = 4
	seedPort     = 8080
	// seedProbePeriod in seconds: long enough to be seen on the axis, short
	// enough not to bore.
	seedProbePeriod = 2
)

// seed creates the Service and then the Deployment, so that the first picture
// is a Service that converges.
func seed(ctx context.Context, client kubernetes.Interface) error {
	labels := map[string]string{"app": seedName}
	meta := metav1.ObjectMeta{Name: seedName, Labels: labels}
	_, err := client.CoreV1().Services(metav1.NamespaceDefault).Create(ctx, &corev1.Service{
		ObjectMeta: meta,
		Spec: corev1.ServiceSpec{
			Selector: labels,
			Ports:    []corev1.ServicePort{{Name: "http", Port: 80, TargetPort: intstr.FromInt32(seedPort)}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("seed Service %s: %w", SeedService, err)
	}
	_, err = client.AppsV1().Deployments(metav1.NamespaceDefault).Create(ctx, &appsv1.Deployment{
		ObjectMeta: meta,
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](seedReplicas),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					TerminationGracePeriodSeconds: ptr.To[int64](15),
					Containers: []corev1.Container{{
						Name: seedName, Image: "nginx",
						Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: seedPort}},
						ReadinessProbe: &corev1.Probe{
							ProbeHandler:  corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/", Port: intstr.FromInt32(seedPort)}},
							PeriodSeconds: seedProbePeriod,
						},
					}},
				},
			},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("seed Deployment %s: %w", SeedService, err)
	}
	return nil
}
