package kubelet

import (
	"context"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"k8s.io/klog/v2"
)

const (
	// statusPeriod is how often an unchanged Node status is written
	// (nodeStatusReportFrequency).
	statusPeriod = 5 * time.Minute
	// leaseSeconds is nodeLeaseDurationSeconds.
	leaseSeconds = 40
	// retryPeriod is the wait after a failed registration.
	retryPeriod = time.Second
)

// register creates the Node or brings an existing one up to date. It goes on
// trying while the API server cannot be reached, and gives up when it refuses.
func (k *Kubelet) register(ctx context.Context) error {
	for {
		err := k.tryRegister(ctx)
		if err == nil || ctx.Err() != nil {
			return err
		}
		if apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsBadRequest(err) {
			return fmt.Errorf("register node %s: %w", k.o.Node, err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-k.o.Clock.After(retryPeriod):
		}
	}
}

func (k *Kubelet) tryRegister(ctx context.Context) error {
	nodes := k.o.Client.CoreV1().Nodes()
	n := k.node()
	created, err := nodes.Create(ctx, n, metav1.CreateOptions{})
	if err == nil {
		k.events.Event(nodeRef(created), corev1.EventTypeNormal, "Starting", "Starting kubelet.")
		if len(created.Status.Conditions) > 0 {
			return nil
		}
		return k.writeNodeStatus(ctx)
	}
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	err = retry.RetryOnConflict(retry.DefaultRetry, func() error {
		have, err := nodes.Get(ctx, k.o.Node, metav1.GetOptions{})
		if err != nil {
			return err
		}
		before := have.DeepCopy()
		if have.Labels == nil {
			have.Labels = map[string]string{}
		}
		maps.Copy(have.Labels, n.Labels)
		have.Spec.PodCIDR, have.Spec.PodCIDRs = n.Spec.PodCIDR, n.Spec.PodCIDRs
		if maps.Equal(before.Labels, have.Labels) && slices.Equal(before.Spec.PodCIDRs, have.Spec.PodCIDRs) {
			return nil
		}
		_, err = nodes.Update(ctx, have, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		return err
	}
	return k.writeNodeStatus(ctx)
}

func texts[T fmt.Stringer](list []T) []string {
	out := make([]string, len(list))
	for i, v := range list {
		out[i] = v.String()
	}
	return out
}

// nodeRef has the node's name for its UID, as the kubelet's own Events have.
func nodeRef(n *corev1.Node) *corev1.ObjectReference {
	return &corev1.ObjectReference{Kind: "Node", APIVersion: "v1", Name: n.Name, UID: n.UID}
}

func (k *Kubelet) node() *corev1.Node {
	labels := map[string]string{
		corev1.LabelHostname:   k.o.Node,
		corev1.LabelOSStable:   runtime.GOOS,
		corev1.LabelArchStable: runtime.GOARCH,
	}
	if k.o.Zone != "" {
		labels[corev1.LabelTopologyZone] = k.o.Zone
	}
	maps.Copy(labels, k.o.Labels)
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: k.o.Node, Labels: labels},
		Spec:       corev1.NodeSpec{PodCIDR: k.o.PodCIDRs[0].String(), PodCIDRs: texts(k.o.PodCIDRs)},
		Status:     k.nodeStatus(nil),
	}
}

// nodeStatus is the status now; before keeps the transition times.
func (k *Kubelet) nodeStatus(before *corev1.NodeStatus) corev1.NodeStatus {
	now := metav1.NewTime(k.o.Hooks.stamp(k.o.Clock.Now())).Rfc3339Copy()
	capacity := corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("4"),
		corev1.ResourceMemory: resource.MustParse("8Gi"),
		corev1.ResourcePods:   resource.MustParse("110"),
	}
	s := corev1.NodeStatus{
		Capacity: capacity, Allocatable: capacity.DeepCopy(),
		NodeInfo: corev1.NodeSystemInfo{
			KubeletVersion: Version, OperatingSystem: runtime.GOOS, Architecture: runtime.GOARCH,
			KernelVersion: kernelRelease(), OSImage: "kconverge lab", ContainerRuntimeVersion: "kconverge://lab",
			MachineID: k.o.Node, SystemUUID: k.o.Node, BootID: k.o.Node,
		},
	}
	for _, a := range k.o.Addresses {
		s.Addresses = append(s.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: a.String()})
	}
	s.Addresses = append(s.Addresses, corev1.NodeAddress{Type: corev1.NodeHostName, Address: k.o.Node})
	add := func(t corev1.NodeConditionType, status corev1.ConditionStatus, reason, msg string) {
		c := corev1.NodeCondition{Type: t, Status: status, Reason: reason, Message: msg, LastHeartbeatTime: now, LastTransitionTime: now}
		if before != nil {
			for _, b := range before.Conditions {
				if b.Type == t && b.Status == status {
					c.LastTransitionTime = b.LastTransitionTime
				}
			}
		}
		s.Conditions = append(s.Conditions, c)
	}
	add(corev1.NodeMemoryPressure, corev1.ConditionFalse, "KubeletHasSufficientMemory", "kubelet has sufficient memory available")
	add(corev1.NodeDiskPressure, corev1.ConditionFalse, "KubeletHasNoDiskPressure", "kubelet has no disk pressure")
	add(corev1.NodePIDPressure, corev1.ConditionFalse, "KubeletHasSufficientPID", "kubelet has sufficient PID available")
	add(corev1.NodeReady, corev1.ConditionTrue, "KubeletReady", "kubelet is posting ready status")
	return s
}

// kernelRelease is this machine's, as uname -r has it: it is the one that keeps
// the node's rules. Empty where there is no /proc.
func kernelRelease() string {
	b, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

func (k *Kubelet) writeNodeStatus(ctx context.Context) error {
	nodes := k.o.Client.CoreV1().Nodes()
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		n, err := nodes.Get(ctx, k.o.Node, metav1.GetOptions{})
		if err != nil {
			return err
		}
		n.Status = k.nodeStatus(&n.Status)
		_, err = nodes.UpdateStatus(ctx, n, metav1.UpdateOptions{})
		return err
	})
}

// heartbeats renews the Lease until ctx ends. A failed heartbeat is reported
// and made up for by the next one, as in a real cluster: that it is missing is
// what the cluster must notice.
func (k *Kubelet) heartbeats(ctx context.Context) {
	t := k.o.Clock.NewTicker(k.o.Heartbeat)
	defer t.Stop()
	written := k.o.Clock.Now()
	renewed := k.o.Clock.Now()
	var lease *coordinationv1.Lease
	for {
		var err error
		lease, err = k.renew(ctx, lease)
		if err == nil {
			if k.o.Clock.Since(renewed) > 2*k.o.Heartbeat {
				// The cluster may have given the node up: say that it is back.
				written = time.Time{}
			}
			renewed = k.o.Clock.Now()
		}
		noLeases := apierrors.IsNotFound(err)
		if noLeases || k.o.Clock.Since(written) >= statusPeriod {
			if err = k.writeNodeStatus(ctx); err == nil {
				written = k.o.Clock.Now()
			}
		}
		if err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Heartbeat failed", "node", k.o.Node)
		}
		select {
		case <-ctx.Done():
			return
		case <-t.C():
		}
	}
}

// renew writes the node's Lease. It returns what it wrote, so that the next
// renewal needs no read, and NotFound where there can be no Leases.
func (k *Kubelet) renew(ctx context.Context, have *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	leases := k.o.Client.CoordinationV1().Leases(corev1.NamespaceNodeLease)
	now := metav1.NewMicroTime(k.o.Hooks.stamp(k.o.Clock.Now()))
	if have == nil {
		var err error
		if have, err = leases.Get(ctx, k.o.Node, metav1.GetOptions{}); apierrors.IsNotFound(err) {
			return k.createLease(ctx, now)
		} else if err != nil {
			return nil, err
		}
	}
	have.Spec.RenewTime = &now
	l, err := leases.Update(ctx, have, metav1.UpdateOptions{})
	switch {
	case apierrors.IsNotFound(err): // somebody deleted it
		return k.createLease(ctx, now)
	case err != nil:
		// The next one starts from a fresh read.
		return nil, fmt.Errorf("renew the lease of node %s: %w", k.o.Node, err)
	}
	return l, nil
}

func (k *Kubelet) createLease(ctx context.Context, now metav1.MicroTime) (*coordinationv1.Lease, error) {
	holder, seconds := k.o.Node, int32(leaseSeconds)
	l := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: k.o.Node, Namespace: corev1.NamespaceNodeLease},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &seconds, RenewTime: &now},
	}
	if n, err := k.o.Client.CoreV1().Nodes().Get(ctx, k.o.Node, metav1.GetOptions{}); err == nil {
		l.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: n.Name, UID: n.UID}}
	}
	leases := k.o.Client.CoordinationV1().Leases(corev1.NamespaceNodeLease)
	created, err := leases.Create(ctx, l, metav1.CreateOptions{})
	if apierrors.IsNotFound(err) {
		// The namespace is missing, which the API server of a real cluster
		// makes; or there are no Leases at all, and the second try says so.
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: corev1.NamespaceNodeLease}}
		if _, err := k.o.Client.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			return nil, err
		}
		created, err = leases.Create(ctx, l, metav1.CreateOptions{})
	}
	if err != nil {
		return nil, err
	}
	return created, nil
}
