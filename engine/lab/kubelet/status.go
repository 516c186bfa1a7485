package kubelet

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// writeTries is how often a status is put onto a fresher object in a row.
const writeTries = 5

// write brings the object's status up to date, if it is not.
func (p *pod) write(ctx context.Context) error {
	obj, gone := p.object()
	if gone {
		return errGone
	}
	pods := p.k.o.Client.CoreV1().Pods(obj.Namespace)
	for try := 1; ; try++ {
		cp := obj.DeepCopy()
		p.fill(cp)
		if equality.Semantic.DeepEqual(obj.Status, cp.Status) {
			return nil
		}
		updated, err := pods.UpdateStatus(ctx, cp, metav1.UpdateOptions{})
		if apierrors.IsConflict(err) && try < writeTries {
			if updated, err = pods.Get(ctx, obj.Name, metav1.GetOptions{}); err == nil && updated.UID == p.uid {
				obj = updated
				continue
			}
		}
		switch {
		case apierrors.IsNotFound(err), err == nil && updated.UID != p.uid:
			p.store(obj, true)
			return errGone
		case err != nil:
			return fmt.Errorf("write the status of pod %s/%s: %w", obj.Namespace, obj.Name, err)
		}
		updated.ManagedFields = nil
		p.store(updated, false)
		return nil
	}
}

// finish sets what holds once all containers have ended: by
// pkg/kubelet getPhase, Succeeded if all of them exited with 0, else Failed. What
// never ran counts as lost.
func (p *pod) finish() {
	p.phase, p.decided = corev1.PodSucceeded, true
	failed := false
	for i := range p.inits {
		c := &p.inits[i]
		if c.alive {
			p.exit(c, p.clock.Now(), 137)
		}
		c.see()
		if c.end != nil {
			c.seen = terminated
			failed = failed || c.end.ExitCode != 0
		}
	}
	for i := range p.containers {
		c := &p.containers[i]
		c.ready = false
		if c.end == nil && failed {
			p.phase = corev1.PodFailed // it waits for ever, as its pod says
			continue
		}
		if c.end == nil {
			c.lose(p.k.o.Hooks.stamp(p.clock.Now()))
		}
		c.seen = terminated
		if c.end.ExitCode != 0 {
			p.phase = corev1.PodFailed
		}
	}
}

// getPhase is the phase of a pod whose end is not decided, by pkg/kubelet
// getPhase: pending until each container has run once.
func (p *pod) getPhase() corev1.PodPhase {
	if p.decided {
		return p.phase
	}
	if !p.initialized {
		return corev1.PodPending
	}
	for i := range p.containers {
		if c := &p.containers[i]; c.seen == waiting && c.last == nil {
			return corev1.PodPending
		}
	}
	return corev1.PodRunning
}

// fill writes what the kubelet knows into the status and leaves the conditions
// of others as they are.
func (p *pod) fill(obj *corev1.Pod) {
	s := &obj.Status
	p.phase = p.getPhase()
	s.Phase = p.phase
	s.ObservedGeneration = obj.Generation
	s.HostIP, s.HostIPs = p.k.o.Addresses[0].String(), nil
	for _, a := range p.k.o.Addresses {
		s.HostIPs = append(s.HostIPs, corev1.HostIP{IP: a.String()})
	}
	if s.StartTime == nil {
		t := metav1.NewTime(p.k.o.Hooks.stamp(p.admitted)).Rfc3339Copy()
		s.StartTime = &t
	}
	if len(p.ips) > 0 {
		s.PodIP, s.PodIPs = p.ips[0].String(), nil
		for _, a := range p.ips {
			s.PodIPs = append(s.PodIPs, corev1.PodIP{IP: a.String()})
		}
	}
	s.InitContainerStatuses, s.ContainerStatuses = nil, nil
	for i := range p.inits {
		one := p.inits[i].status(p)
		one.Ready = one.State.Terminated != nil && one.State.Terminated.ExitCode == 0
		s.InitContainerStatuses = append(s.InitContainerStatuses, one)
	}
	for i := range p.containers {
		s.ContainerStatuses = append(s.ContainerStatuses, p.containers[i].status(p))
	}
	p.fillConditions(obj)
}

func (p *pod) fillConditions(obj *corev1.Pod) {
	ended := p.phase == corev1.PodSucceeded || p.phase == corev1.PodFailed
	why := ""
	switch p.phase {
	case corev1.PodSucceeded:
		why = "PodCompleted"
	case corev1.PodFailed:
		why = "PodFailed"
	}
	var unready []string
	for i := range p.containers {
		if c := &p.containers[i]; c.seen != running || !c.ready {
			unready = append(unready, c.spec.Name)
		}
	}
	containersReady := corev1.PodCondition{Type: corev1.ContainersReady, Status: corev1.ConditionTrue}
	switch {
	case ended:
		containersReady.Status, containersReady.Reason = corev1.ConditionFalse, why
	case len(unready) > 0:
		containersReady.Status, containersReady.Reason = corev1.ConditionFalse, "ContainersNotReady"
		containersReady.Message = fmt.Sprintf("containers with unready status: [%s]", strings.Join(unready, " "))
	}
	ready := containersReady
	ready.Type = corev1.PodReady
	if ready.Status == corev1.ConditionTrue {
		if msg := closedGates(obj); msg != "" {
			ready.Status, ready.Reason, ready.Message = corev1.ConditionFalse, "ReadinessGatesNotReady", msg
		}
	}
	initialized := corev1.PodCondition{Type: corev1.PodInitialized, Status: corev1.ConditionTrue}
	if p.phase == corev1.PodSucceeded {
		initialized.Reason = why
	}
	if names := p.uninitialized(); len(names) > 0 {
		initialized.Status, initialized.Reason = corev1.ConditionFalse, "ContainersNotInitialized"
		initialized.Message = fmt.Sprintf("containers with incomplete status: [%s]", strings.Join(names, " "))
	}
	sandbox := corev1.PodCondition{Type: corev1.PodReadyToStartContainers, Status: corev1.ConditionFalse}
	if len(p.ips) > 0 && !ended {
		sandbox.Status = corev1.ConditionTrue
	}
	for _, c := range []corev1.PodCondition{sandbox, initialized, ready, containersReady} {
		p.setCondition(&obj.Status, c)
	}
	if !hasCondition(&obj.Status, corev1.PodScheduled) {
		p.setCondition(&obj.Status, corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionTrue})
	}
}

// uninitialized are the init containers that have not succeeded.
func (p *pod) uninitialized() (names []string) {
	for i := range p.inits {
		if c := &p.inits[i]; c.seen != terminated || c.end.ExitCode != 0 {
			names = append(names, c.spec.Name)
		}
	}
	return names
}

// setCondition stamps the moment of a transition once, however often the write
// that carries it is tried.
func (p *pod) setCondition(s *corev1.PodStatus, c corev1.PodCondition) {
	if old, ok := p.conditions[c.Type]; ok && old.Status == c.Status {
		c.LastTransitionTime = old.LastTransitionTime
	} else {
		c.LastTransitionTime = metav1.NewTime(p.k.o.Hooks.stamp(p.clock.Now())).Rfc3339Copy()
	}
	c.ObservedGeneration = s.ObservedGeneration
	p.conditions[c.Type] = c
	for i := range s.Conditions {
		if s.Conditions[i].Type == c.Type {
			s.Conditions[i] = c
			return
		}
	}
	s.Conditions = append(s.Conditions, c)
}

func hasCondition(s *corev1.PodStatus, t corev1.PodConditionType) bool {
	for i := range s.Conditions {
		if s.Conditions[i].Type == t {
			return true
		}
	}
	return false
}

// closedGates says which readiness gates keep the pod from being ready.
func closedGates(obj *corev1.Pod) string {
	var out []string
	for _, g := range obj.Spec.ReadinessGates {
		status := corev1.ConditionStatus("")
		for _, c := range obj.Status.Conditions {
			if c.Type == g.ConditionType {
				status = c.Status
			}
		}
		switch status {
		case corev1.ConditionTrue:
		case "":
			out = append(out, fmt.Sprintf("corresponding condition of pod readiness gate %q does not exist.", g.ConditionType))
		default:
			out = append(out, fmt.Sprintf("the status of pod readiness gate %q is not \"True\", but %v", g.ConditionType, status))
		}
	}
	return strings.Join(out, ", ")
}
