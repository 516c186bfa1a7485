package lab

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// portSetter is told which ports every pod should answer on beside those it
// declares.
type portSetter interface {
	SetTargetPorts(ports []int32)
	// SetTargetUDPPorts is the same for UDP.
	SetTargetUDPPorts(ports []int32)
}

// followTargetPorts keeps the nodes' listeners in step with the Services'
// numeric target ports: a container of the lab is an image's name only, so what
// it listens on is what somebody wants to reach.
func followTargetPorts(ctx context.Context, client kubernetes.Interface, to portSetter) error {
	factory := informers.NewSharedInformerFactory(client, 0)
	services := factory.Core().V1().Services()
	lister := services.Lister()
	changed := make(chan struct{}, 1)
	poke := func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	_, err := services.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { poke() },
		UpdateFunc: func(_, _ any) { poke() },
		DeleteFunc: func(any) { poke() },
	})
	if err != nil {
		return err
	}
	factory.Start(ctx.Done())
	defer factory.Shutdown()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
			all, err := lister.List(labels.Everything())
			if err != nil {
				return err
			}
			to.SetTargetPorts(targetPorts(all, false))
			to.SetTargetUDPPorts(targetPorts(all, true))
		}
	}
}

// targetPorts are those of UDP, or of everything else.
func targetPorts(services []*corev1.Service, udp bool) []int32 {
	var ports []int32
	for _, s := range services {
		for _, p := range s.Spec.Ports {
			if n := p.TargetPort.IntVal; n > 0 && udp == (p.Protocol == corev1.ProtocolUDP) {
				ports = append(ports, n)
			}
		}
	}
	slices.Sort(ports)
	return slices.Compact(ports)
}
