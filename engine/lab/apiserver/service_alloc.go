package apiserver

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/util/dryrun"
	"k8s.io/utils/ptr"
)

// serviceNumbers gives Services their ClusterIPs and node ports, by the rules
// of pkg/registry/core/service/storage/alloc.go.
type serviceNumbers struct {
	// ips has the addresses of each family that the cluster has; IPv4 is there
	// and comes first.
	ips   map[corev1.IPFamily]*addresses
	ports *pool
	// noIPv6 is why there is one family only.
	noIPv6 string
}

// newServiceNumbers gives addresses of both families, or of IPv4 alone when
// noIPv6 says why.
func newServiceNumbers(noIPv6 string) *serviceNumbers {
	n := &serviceNumbers{ips: map[corev1.IPFamily]*addresses{corev1.IPv4Protocol: newAddresses(ServiceCIDR)}, ports: newNodePorts(), noIPv6: noIPv6}
	if noIPv6 == "" {
		n.ips[corev1.IPv6Protocol] = newAddresses(ServiceCIDRv6)
	}
	return n
}

// why ends a message that something is not configured.
func (n *serviceNumbers) why() string {
	if n.noIPv6 == "" {
		return ""
	}
	return ": " + n.noIPv6
}

// transaction collects what one write took and what it will give back.
type transaction struct {
	undo, commit []func()
}

// finish implements genericregistry.FinishFunc.
func (t *transaction) finish(success bool) {
	for _, f := range map[bool][]func(){true: t.commit, false: t.undo}[success] {
		f()
	}
}

// beginCreate implements genericregistry.BeginCreateFunc.
func (n *serviceNumbers) beginCreate(_ context.Context, obj runtime.Object, o *metav1.CreateOptions) (genericregistry.FinishFunc, error) {
	svc := obj.(*corev1.Service)
	syncClusterIPs(svc, nil)
	return n.begin(svc, nil, dryrun.IsDryRun(o.DryRun))
}

// beginUpdate implements genericregistry.BeginUpdateFunc.
func (n *serviceNumbers) beginUpdate(_ context.Context, obj, old runtime.Object, o *metav1.UpdateOptions) (genericregistry.FinishFunc, error) {
	svc, was := obj.(*corev1.Service), old.(*corev1.Service)
	keepAllocated(svc, was)
	dropUnneeded(svc, was)
	syncClusterIPs(svc, was)
	keepHealthCheckPort(svc, was)
	return n.begin(svc, was, dryrun.IsDryRun(o.DryRun))
}

// begin takes what svc needs and did not hold, and gives back what it held and
// needs no longer once the write has succeeded. was is nil on create.
func (n *serviceNumbers) begin(svc, was *corev1.Service, dry bool) (genericregistry.FinishFunc, error) {
	t := &transaction{}
	errs := n.initFamilies(svc, was)
	if was == nil {
		was = &corev1.Service{}
	}
	if len(errs) == 0 {
		errs = slices.Concat(n.clusterIPs(t, svc, was), n.nodePorts(t, svc, was), n.healthCheckPort(t, svc, was))
	}
	if len(errs) > 0 {
		t.finish(false)
		return nil, apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("Service").GroupKind(), svc.Name, errs)
	}
	return func(_ context.Context, success bool) { t.finish(success && !dry) }, nil
}

// clusterIPs gives svc an address of each of its families that it does not hold
// already. An address that was asked for and differs from the one held is left
// for validation to refuse, since addresses may not change.
func (n *serviceNumbers) clusterIPs(t *transaction, svc, was *corev1.Service) (errs field.ErrorList) {
	held := heldIPs(was)
	if keepsPreferredFamilies(svc, was) {
		return nil
	}
	var keep []string
	if needsClusterIP(svc) && !headless(svc) {
		path := field.NewPath("spec", "clusterIPs")
		for i, family := range svc.Spec.IPFamilies {
			if i == len(svc.Spec.ClusterIPs) {
				svc.Spec.ClusterIPs = append(svc.Spec.ClusterIPs, "")
			}
			ip := svc.Spec.ClusterIPs[i]
			from := n.ips[family]
			switch {
			case slices.Contains(held, ip):
				keep = append(keep, ip)
				continue
			case ip == "":
				var ok bool
				if ip, ok = from.any(); !ok {
					errs = append(errs, field.Invalid(path, svc.Spec.ClusterIPs, "every Service address of "+from.prefix.String()+" is taken: delete Services"))
					continue
				}
			default:
				if err := from.take(ip); err != nil {
					errs = append(errs, field.Invalid(path, svc.Spec.ClusterIPs, "failed to allocate IP "+ip+": "+err.Error()))
					continue
				}
			}
			t.undo = append(t.undo, func() { from.free(ip) })
			svc.Spec.ClusterIPs[i] = ip
		}
		if len(svc.Spec.ClusterIPs) > 0 {
			svc.Spec.ClusterIP = svc.Spec.ClusterIPs[0]
		}
	}
	for _, ip := range held {
		if !slices.Contains(keep, ip) {
			t.commit = append(t.commit, func() { n.freeIP(ip) })
		}
	}
	return errs
}

// freeIP gives back an address of either family.
func (n *serviceNumbers) freeIP(ip string) {
	if from := n.ips[familyOfIP(ip)]; from != nil {
		from.free(ip)
	}
}

func (n *serviceNumbers) nodePorts(t *transaction, svc, was *corev1.Service) (errs field.ErrorList) {
	held := heldPorts(was)
	keep := map[uint32]bool{}
	// The same port number may serve TCP and UDP.
	mine := map[uint32][]corev1.Protocol{}
	if needsNodePort(svc) {
		for i := range svc.Spec.Ports {
			p := &svc.Spec.Ports[i]
			path := field.NewPath("spec", "ports").Index(i).Child("nodePort")
			if p.NodePort == 0 {
				port, ok := n.ports.any()
				if !ok {
					errs = append(errs, field.Invalid(path, 0, "every node port is taken: delete Services"))
					continue
				}
				t.undo = append(t.undo, func() { n.ports.free(port) })
				p.NodePort = int32(port)
				continue
			}
			port := uint32(p.NodePort)
			if !n.ports.contains(port) {
				errs = append(errs, field.Invalid(path, p.NodePort, "provided port is not in the valid range. The range of valid ports is 30000-32767"))
				continue
			}
			if slices.Contains(mine[port], p.Protocol) {
				errs = append(errs, field.Duplicate(path, p.NodePort))
				continue
			}
			again := len(mine[port]) > 0
			mine[port] = append(mine[port], p.Protocol)
			switch {
			case again:
			case slices.Contains(held, port):
				keep[port] = true
			case n.ports.take(port):
				t.undo = append(t.undo, func() { n.ports.free(port) })
			default:
				errs = append(errs, field.Invalid(path, p.NodePort, "provided port is already allocated"))
			}
		}
	}
	for _, port := range held {
		if !keep[port] {
			t.commit = append(t.commit, func() { n.ports.free(port) })
		}
	}
	return errs
}

// afterDelete implements genericregistry.AfterDeleteFunc.
func (n *serviceNumbers) afterDelete(obj runtime.Object, o *metav1.DeleteOptions) {
	svc, ok := obj.(*corev1.Service)
	if !ok || o != nil && dryrun.IsDryRun(o.DryRun) {
		return
	}
	for _, ip := range heldIPs(svc) {
		n.freeIP(ip)
	}
	for _, port := range heldPorts(svc) {
		n.ports.free(port)
	}
	if port := heldHealthPort(svc); port != 0 {
		n.ports.free(port)
	}
}

// restore takes what stored Services hold, when a server starts on old data.
func (n *serviceNumbers) restore(services []corev1.Service) {
	for i := range services {
		for _, ip := range heldIPs(&services[i]) {
			if from := n.ips[familyOfIP(ip)]; from != nil {
				_ = from.take(ip) // two stored Services with one address: the first has it
			}
		}
		for _, port := range heldPorts(&services[i]) {
			n.ports.take(port)
		}
		if port := heldHealthPort(&services[i]); port != 0 {
			n.ports.take(port)
		}
	}
}

// heldIPs are the addresses that a stored Service holds.
func heldIPs(svc *corev1.Service) []string {
	if !needsClusterIP(svc) || headless(svc) {
		return nil
	}
	return svc.Spec.ClusterIPs
}

func heldPorts(svc *corev1.Service) (ports []uint32) {
	if !needsNodePort(svc) {
		return nil
	}
	for _, p := range svc.Spec.Ports {
		if n := uint32(p.NodePort); n != 0 && !slices.Contains(ports, n) {
			ports = append(ports, n)
		}
	}
	return ports
}

func needsClusterIP(svc *corev1.Service) bool {
	return svc.Spec.Type != corev1.ServiceTypeExternalName && svc.Spec.Type != ""
}

func needsNodePort(svc *corev1.Service) bool {
	switch svc.Spec.Type {
	case corev1.ServiceTypeNodePort:
		return true
	case corev1.ServiceTypeLoadBalancer:
		return svc.Spec.AllocateLoadBalancerNodePorts == nil || *svc.Spec.AllocateLoadBalancerNodePorts
	}
	return false
}

// keepAllocated fills in what a client left out and the Service already has,
// so that applying the same manifest again changes nothing
// (patchAllocatedValues in pkg/registry/core/service/storage/storage.go).
func keepAllocated(svc, was *corev1.Service) {
	if needsClusterIP(svc) && needsClusterIP(was) {
		setDefault(&svc.Spec.ClusterIP, was.Spec.ClusterIP)
		if len(svc.Spec.ClusterIPs) == 0 {
			svc.Spec.ClusterIPs = slices.Clone(was.Spec.ClusterIPs)
		}
	}
	if !needsNodePort(svc) || !needsNodePort(was) {
		return
	}
	used := map[int32]bool{}
	for _, p := range svc.Spec.Ports {
		used[p.NodePort] = true
	}
	had := map[string]int32{}
	for _, p := range was.Spec.Ports {
		had[p.Name] = p.NodePort
	}
	for i := range svc.Spec.Ports {
		p := &svc.Spec.Ports[i]
		if old := had[p.Name]; p.NodePort == 0 && !used[old] {
			p.NodePort = old
			used[old] = true
		}
	}
}

// dropUnneeded clears values that came with the former type, unless the client
// changed them too (dropTypeDependentFields in
// pkg/registry/core/service/strategy.go).
func dropUnneeded(svc, was *corev1.Service) {
	if needsClusterIP(was) && !needsClusterIP(svc) {
		if svc.Spec.ClusterIP == was.Spec.ClusterIP && slices.Equal(svc.Spec.ClusterIPs, was.Spec.ClusterIPs) {
			svc.Spec.ClusterIP, svc.Spec.ClusterIPs = "", nil
		}
		if slices.Equal(svc.Spec.IPFamilies, was.Spec.IPFamilies) {
			svc.Spec.IPFamilies = nil
		}
		if ptr.Equal(svc.Spec.IPFamilyPolicy, was.Spec.IPFamilyPolicy) {
			svc.Spec.IPFamilyPolicy = nil
		}
	}
	if needsNodePort(was) && !needsNodePort(svc) {
		had := map[string]int32{}
		for _, p := range was.Spec.Ports {
			had[p.Name] = p.NodePort
		}
		for i := range svc.Spec.Ports {
			if p := &svc.Spec.Ports[i]; p.NodePort == had[p.Name] {
				p.NodePort = 0
			}
		}
	}
	if externallyAccessible(was) && !externallyAccessible(svc) && svc.Spec.ExternalTrafficPolicy == was.Spec.ExternalTrafficPolicy {
		svc.Spec.ExternalTrafficPolicy = ""
	}
	if was.Spec.Type == corev1.ServiceTypeLoadBalancer && svc.Spec.Type != corev1.ServiceTypeLoadBalancer {
		svc.Spec.AllocateLoadBalancerNodePorts = nil
		svc.Spec.LoadBalancerClass = nil
	}
}

func externallyAccessible(svc *corev1.Service) bool {
	return svc.Spec.Type == corev1.ServiceTypeLoadBalancer || svc.Spec.Type == corev1.ServiceTypeNodePort ||
		svc.Spec.Type == corev1.ServiceTypeClusterIP && len(svc.Spec.ExternalIPs) > 0
}
