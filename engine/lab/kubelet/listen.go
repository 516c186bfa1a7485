package kubelet

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// listenRetry is the wait after listeners that could not be opened.
const listenRetry = time.Second

// listenDue is when the next program has warmed up and listens; zero when all
// that will do.
func (p *pod) listenDue() time.Time {
	var at time.Time
	for i := range p.containers {
		c := &p.containers[i]
		if !c.alive || c.listening || !c.program.serves {
			continue
		}
		t := c.began.Add(c.warmup)
		if t.Before(p.listenAgain) {
			t = p.listenAgain
		}
		if at.IsZero() || t.Before(at) {
			at = t
		}
	}
	return at
}

// relisten opens and closes the pod's listeners as its programs need them: the
// ports of those that serve and have warmed up.
func (p *pod) relisten() {
	obj, _ := p.object()
	now := p.clock.Now()
	var ports, udp []int32
	var up []*container
	for i := range p.containers {
		c := &p.containers[i]
		if !c.alive || !c.program.serves || now.Before(c.began.Add(c.warmup)) {
			continue
		}
		up = append(up, c)
		for _, port := range c.spec.Ports {
			if port.Protocol == corev1.ProtocolTCP || port.Protocol == "" {
				ports = append(ports, port.ContainerPort)
			} else if port.Protocol == corev1.ProtocolUDP {
				udp = append(udp, port.ContainerPort)
			}
		}
	}
	if len(up) == 0 {
		p.k.o.Sandbox.Close(string(p.uid))
		return
	}
	err := p.k.o.Sandbox.Listen(string(p.uid), obj.Name, p.ips, ports)
	if err == nil {
		err = p.k.o.Sandbox.ListenUDP(string(p.uid), udp)
	}
	if err != nil {
		p.listenAgain = now.Add(listenRetry)
		p.event(nil, corev1.EventTypeWarning, "FailedListen", fmt.Sprintf("The program cannot listen on %s: %v", strings.Join(texts(p.ips), " and "), err))
		return
	}
	for _, c := range up {
		c.listening = true
	}
}
