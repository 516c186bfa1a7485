package ui

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/kconverge/kconverge/engine/timeline"
	"github.com/kconverge/kconverge/ui/view"
)

// actionTimeout is how long an action may take before the screen says so.
const actionTimeout = 15 * time.Second

// The kinds of workloads that can be scaled, and those that can be restarted: a
// DaemonSet has a pod on each node, and a ReplicaSet never replaces its pods.
var (
	scalable    = []string{"Deployment", "StatefulSet", "ReplicaSet"}
	restartable = []string{"Deployment", "StatefulSet", "DaemonSet"}
)

// workload finds the first workload of one of the kinds behind the Service in
// focus; when there is none it says why.
func (m *Model) workload(kinds []string) (svc *timeline.Service, w timeline.Workload, ok bool) {
	if m.o.Actions == nil {
		m.complain(m.o.NoActions)
		return nil, w, false
	}
	svc = m.context().Service()
	if svc == nil {
		m.complain("no Service is chosen")
		return nil, w, false
	}
	for _, k := range kinds {
		for _, w := range svc.Workloads {
			if w.Kind == k {
				return svc, w, true
			}
		}
	}
	last := len(kinds) - 1
	m.complain("no " + strings.Join(kinds[:last], ", ") + " or " + kinds[last] + " stands behind " + svc.Namespace + "/" + svc.Name)
	return nil, w, false
}

func (m *Model) askScale() tea.Cmd {
	svc, w, ok := m.workload(scalable)
	if !ok {
		return nil
	}
	ns, kind, name := svc.Namespace, w.Kind, w.Name
	m.layer = &prompt{
		title: "scale " + name, text: strconv.Itoa(int(w.Replicas)), fresh: true, number: true, note: "replicas   ↑ one more   ↓ one less   ⏎ do it   esc leave",
		enter: func(m *Model, s string) tea.Cmd {
			n, err := strconv.ParseInt(s, 10, 32)
			if err != nil || n < 0 || n > 1000 {
				m.complain("replicas must be a number from 0 to 1000")
				return nil
			}
			return m.act(fmt.Sprintf("scale %s to %d", name, n), func(ctx context.Context) error {
				return m.o.Actions.Scale(ctx, ns, kind, name, int32(n))
			})
		},
	}
	return nil
}

func (m *Model) askRestart() tea.Cmd {
	svc, w, ok := m.workload(restartable)
	if !ok {
		return nil
	}
	ns, kind, name := svc.Namespace, w.Kind, w.Name
	m.layer = &prompt{
		title: "restart " + name + "?", note: "every pod is replaced   ⏎ do it   esc leave",
		enter: func(m *Model, _ string) tea.Cmd {
			return m.act("restart "+name, func(ctx context.Context) error { return m.o.Actions.Restart(ctx, ns, kind, name) })
		},
	}
	return nil
}

func (m *Model) askDelete() tea.Cmd {
	if m.o.Actions == nil {
		m.complain(m.o.NoActions)
		return nil
	}
	svc, pod := m.context().Service(), m.focus.Pod
	if svc == nil || pod == "" || m.shown != view.Timeline {
		m.complain("choose a pod's lane on the Timeline first (u shows the steady ones)")
		return nil
	}
	if m.focus.PodGone {
		m.complain("pod " + pod + " is gone")
		return nil
	}
	ns := svc.Namespace
	m.layer = &prompt{
		title: "delete pod " + pod + "?", note: "⏎ do it   esc leave",
		enter: func(m *Model, _ string) tea.Cmd {
			return m.act("delete pod "+pod, func(ctx context.Context) error { return m.o.Actions.DeletePod(ctx, ns, pod) })
		},
	}
	return nil
}

// copyHint copies the line to try elsewhere, and shows it: not every terminal
// lets a program copy.
func (m *Model) copyHint() tea.Cmd {
	if m.o.Hint == "" {
		m.complain(noHint)
		return nil
	}
	m.say("copied: " + m.o.Hint)
	return m.copy(cleanLines(m.o.Hint))
}

// noHint is why there is no line to copy.
const noHint = "there is no kubectl line: the cluster is not this program's own"

// act carries out an action outside the drawing goroutine.
func (m *Model) act(text string, f func(context.Context) error) tea.Cmd {
	m.busy++
	m.say(text + " …")
	parent := m.ctx
	return func() tea.Msg {
		ctx, cancel := context.WithTimeout(parent, actionTimeout)
		defer cancel()
		return doneMsg{text, f(ctx)}
	}
}

// failure says what was tried and why it failed; most errors say both.
func failure(text string, err error) string {
	verb, _, _ := strings.Cut(text, " ")
	if strings.HasPrefix(err.Error(), verb+" ") {
		return err.Error()
	}
	return text + ": " + err.Error()
}

func (m *Model) done(d doneMsg) {
	m.busy--
	m.dirty = true
	if d.err != nil {
		m.complain(failure(d.text, d.err))
		return
	}
	m.say(d.text + ": done")
}
