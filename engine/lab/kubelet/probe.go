package kubelet

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/clock"
)

// maxBody is how much of an answer a probe reads.
const maxBody = 10 << 10

// probeKind is one of the three probes a container may have.
type probeKind int

const (
	readiness probeKind = iota
	liveness
	startup
)

func (k probeKind) String() string { return [...]string{"readiness", "liveness", "startup"}[k] }

// title is how Events call it.
func (k probeKind) title() string { return [...]string{"Readiness", "Liveness", "Startup"}[k] }

func (k probeKind) of(c *corev1.Container) *corev1.Probe {
	return [...]*corev1.Probe{c.ReadinessProbe, c.LivenessProbe, c.StartupProbe}[k]
}

// probeResult is a change of what a probe says of one run of a container.
type probeResult struct {
	container *container
	run       int
	kind      probeKind
	ok        bool
}

// probe runs one probe of one run of a container, by the rules of
// k8s.io/kubernetes pkg/kubelet/prober. A readiness or startup probe runs once
// as soon as the kubelet has noticed that the container runs, and has started
// (prober_manager.go asks for that run whenever it reports a container as not
// ready), then once a period, a readiness probe once more at the moment the
// container becomes not ready. A liveness probe runs once a period, counted from
// the pod's admission. Not copied: at these moments the real one may run the
// probe two or three times in a row.
type probe struct {
	kind      probeKind
	spec      *corev1.Probe
	of        *container
	container *corev1.Container
	nth       int // run of the container
	host      string
	clock     clock.WithTicker
	started   time.Time // of the container
	first     time.Duration
	ctx       context.Context // ends with the container's run
	dial      func(ctx context.Context, network, addr string) (net.Conn, error)
	fail      func(msg string)
	results   chan<- probeResult
	hooks     *Hooks
	pod       PodRef

	ok     bool // as last reported
	told   bool
	last   bool
	inARow int // how often in a row last came
}

// probe starts what a container that runs is probed with, and says what holds
// where there is no probe: without a startup probe it has started, without a
// readiness probe it is ready. A startup probe comes before the others.
func (p *pod) probe(c *container) {
	ctx, cancel := context.WithCancel(p.probing)
	c.probes = cancel
	if !p.adopted || c.run > 1 {
		c.ready, c.started = false, false
	}
	if c.spec.StartupProbe != nil && !c.started && p.canProbe(c, startup) {
		p.startProbe(p.newProbe(ctx, c, startup))
		return
	}
	p.hasStarted(ctx, c)
}

// hasStarted goes on to the readiness and liveness probes.
func (p *pod) hasStarted(ctx context.Context, c *container) {
	c.started = true
	switch {
	case c.spec.ReadinessProbe == nil:
		c.ready = true
	case p.canProbe(c, readiness):
		p.startProbe(p.newProbe(ctx, c, readiness))
	default:
		c.ready = false
	}
	if c.spec.LivenessProbe != nil && p.canProbe(c, liveness) {
		p.startProbe(p.newProbe(ctx, c, liveness))
	}
}

// canProbe reports whether the lab can run a probe. One that it cannot run
// never makes a container ready, and never restarts it; an Event says so.
func (p *pod) canProbe(c *container, kind probeKind) bool {
	s := kind.of(c.spec)
	ok := s.HTTPGet != nil || s.TCPSocket != nil
	if s.Exec != nil {
		_, ok = script(s.Exec.Command)
	}
	if ok {
		return true
	}
	then := "stays not ready"
	if kind != readiness {
		then = "counts as having passed it"
	}
	p.event(c.spec, corev1.EventTypeWarning, "ProbeNotSupported",
		"The lab runs httpGet and tcpSocket probes, and exec probes of simple commands only: because of its "+kind.String()+" probe container "+c.spec.Name+" "+then)
	return false
}

func (p *pod) newProbe(ctx context.Context, c *container, kind probeKind) *probe {
	pr := &probe{
		kind: kind, spec: kind.of(c.spec), of: c, container: c.spec, nth: c.run, host: p.ips[0].String(), clock: p.clock,
		started: c.began, ctx: ctx, dial: p.k.o.Sandbox.Dial, results: p.results,
		hooks: &p.k.o.Hooks, pod: p.ref(),
		fail: func(msg string) {
			p.event(c.spec, corev1.EventTypeWarning, "Unhealthy", kind.title()+" probe failed: "+msg)
		},
	}
	switch kind {
	case readiness:
		pr.ok, pr.told = c.ready, true
	case liveness:
		pr.ok, pr.told = true, true
		period := probePeriod(pr.spec)
		pr.first = period - p.clock.Since(p.admitted)%period
	}
	return pr
}

// take takes what a probe found, unless it was of an earlier run.
func (p *pod) take(r probeResult) {
	c := r.container
	if r.run != c.run || c.seen != running || c.doomed {
		return
	}
	switch {
	case r.kind == readiness:
		c.ready = r.ok
	case !r.ok:
		p.unhealthy(c, r.kind, p.clock.Now())
	case r.kind == startup:
		c.stopProbes()
		ctx, cancel := context.WithCancel(p.probing)
		c.probes = cancel
		p.hasStarted(ctx, c)
	}
}

// The defaults are core/v1's, for objects that did not pass an API server.
func probePeriod(s *corev1.Probe) time.Duration {
	if s.PeriodSeconds <= 0 {
		return 10 * time.Second
	}
	return time.Duration(s.PeriodSeconds) * time.Second
}

// run probes until ctx ends.
func (p *probe) run(ctx context.Context) {
	t := p.clock.NewTimer(p.first)
	defer t.Stop()
	if p.first > 0 {
		select {
		case <-ctx.Done():
			return
		case <-t.C():
		}
	}
	for {
		began, was := p.clock.Now(), p.ok
		if !p.tick(ctx) {
			return
		}
		if p.kind == readiness && was && !p.ok {
			continue
		}
		// Counted from the beginning of the run: a slow answer does not make
		// the period longer.
		period := p.hooks.probePeriod(p.pod, probePeriod(p.spec))
		t.Reset(max(0, period-p.clock.Since(began)))
		select {
		case <-ctx.Done():
			return
		case <-t.C():
		}
	}
}

// tick probes once and reports a change of what it says. It returns false when ctx
// ended.
func (p *probe) tick(ctx context.Context) bool {
	if p.clock.Since(p.started).Truncate(time.Second) < time.Duration(p.spec.InitialDelaySeconds)*time.Second {
		return true
	}
	err := p.attempt(ctx)
	if ctx.Err() != nil {
		return false
	}
	if err != nil {
		p.fail(err.Error())
	}
	if !p.count(err == nil) {
		return true
	}
	select {
	case p.results <- probeResult{p.of, p.nth, p.kind, p.ok}:
		return true
	case <-ctx.Done():
		return false
	}
}

// count applies the thresholds and reports whether the verdict changed.
func (p *probe) count(ok bool) bool {
	if p.inARow == 0 || p.last != ok {
		p.last, p.inARow = ok, 0
	}
	p.inARow++
	need := int(p.spec.SuccessThreshold)
	if !ok {
		if need = int(p.spec.FailureThreshold); need <= 0 {
			need = 3
		}
	}
	if p.inARow < need || p.told && p.ok == ok {
		return false
	}
	p.ok, p.told = ok, true
	return true
}

// attempt probes, unless it is said that the probe fails.
func (p *probe) attempt(ctx context.Context) error {
	if p.kind == readiness {
		if err := p.hooks.probeFails(p.pod); err != nil {
			return err
		}
	}
	return p.once(ctx)
}

// once probes and returns what failed, nil for success.
func (p *probe) once(ctx context.Context) error {
	timeout := time.Second
	if p.spec.TimeoutSeconds > 0 {
		timeout = time.Duration(p.spec.TimeoutSeconds) * time.Second
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	switch {
	case p.spec.HTTPGet != nil:
		return p.httpGet(ctx, p.spec.HTTPGet)
	case p.spec.Exec != nil:
		return p.exec(ctx, p.spec.Exec, timeout)
	}
	return p.tcpSocket(ctx, p.spec.TCPSocket)
}

// exec follows a command that script understands.
func (p *probe) exec(ctx context.Context, a *corev1.ExecAction, timeout time.Duration) error {
	pr, _ := script(a.Command)
	t := p.clock.NewTimer(min(pr.after, timeout))
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C():
	}
	switch {
	case pr.after > timeout:
		return fmt.Errorf("command timed out: %q timed out after %v", strings.Join(a.Command, " "), timeout)
	case pr.code != 0:
		return fmt.Errorf("command %q exited with %d", strings.Join(a.Command, " "), pr.code)
	}
	return nil
}

func (p *probe) tcpSocket(ctx context.Context, a *corev1.TCPSocketAction) error {
	port, err := containerPort(a.Port, p.container)
	if err != nil {
		return err
	}
	host := a.Host
	if host == "" {
		host = p.host
	}
	c, err := p.dial(ctx, "tcp", net.JoinHostPort(host, strconv.Itoa(port)))
	if err != nil {
		return err
	}
	// The connection was made, which is all there was to find out.
	_ = c.Close()
	return nil
}

func (p *probe) httpGet(ctx context.Context, a *corev1.HTTPGetAction) error {
	port, err := containerPort(a.Port, p.container)
	if err != nil {
		return err
	}
	host := a.Host
	if host == "" {
		host = p.host
	}
	path, err := url.Parse(a.Path)
	if err != nil {
		path = &url.URL{Path: a.Path}
	}
	path.Scheme, path.Host = strings.ToLower(string(a.Scheme)), net.JoinHostPort(host, strconv.Itoa(port))
	if path.Scheme == "" {
		path.Scheme = "http"
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, path.String(), nil)
	if err != nil {
		return err
	}
	req.Header.Set("User-Agent", "kube-probe/1.37")
	req.Header.Set("Accept", "*/*")
	for _, h := range a.HTTPHeaders {
		if http.CanonicalHeaderKey(h.Name) == "Host" {
			req.Host = h.Value
			continue
		}
		req.Header.Add(h.Name, h.Value)
	}
	client := &http.Client{
		Transport: &http.Transport{
			DialContext: p.dial, DisableKeepAlives: true, DisableCompression: true,
			// The kubelet does not verify either: it probes by address.
			TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if _, err := io.CopyN(io.Discard, res.Body, maxBody); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if res.StatusCode < http.StatusOK || res.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("HTTP probe failed with statuscode: %d", res.StatusCode)
	}
	return nil
}

// containerPort resolves a port that may be a name of the container's.
func containerPort(v intstr.IntOrString, c *corev1.Container) (int, error) {
	n := v.IntValue()
	if v.Type == intstr.String {
		for _, p := range c.Ports {
			if p.Name == v.StrVal {
				n = int(p.ContainerPort)
			}
		}
	}
	if n <= 0 || n > 65535 {
		return 0, fmt.Errorf("container %s has no port %s", c.Name, v.String())
	}
	return n, nil
}
