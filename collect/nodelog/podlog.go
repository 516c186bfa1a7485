package nodelog

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kconverge/kconverge/collect"
)

const (
	// idleLimit is how long a log may give nothing before it is asked for
	// anew: a connection can be dead without an end.
	idleLimit = 45 * time.Second
	// restLimit bounds how long what a container that has ended said may take.
	restLimit = 10 * time.Second
	// agentLine is longer than a line of an agent: those stay below 16 KiB, with
	// their ends (collect/agent, split.go).
	agentLine = 32 << 10
)

// follow reads the log of a pod until it ends, and returns how many lines came.
// again: the pod was followed before.
func (n *followed) follow(ctx context.Context, t target, again bool) (lines int, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	n.mu.Lock()
	n.cancel = cancel
	past, from := n.stream.past, n.stream.lineAt
	moved := n.target.uid != t.uid
	n.mu.Unlock()
	if moved {
		return 0, nil
	}
	o := corev1.PodLogOptions{Container: Container}
	if past {
		// What is there ends, so that it can be told from what comes.
		o.SinceSeconds = new(wholeSeconds(n.f.o.Since))
		if lines, err = n.readLog(ctx, t, o); err != nil {
			return lines, err
		}
		n.do(func(s *stream) {
			s.present(n.f.o.Clock.Now())
			from = s.lineAt
		})
		o.SinceSeconds = nil
	}
	if (past || again) && !from.IsZero() {
		// The log's times are those of the node, like the lines'; whole
		// seconds. What comes twice is passed over.
		o.SinceTime = new(metav1.NewTime(from.Add(-time.Second)))
	}
	o.Follow = true
	more, err := n.readLog(ctx, t, o)
	return lines + more, err
}

// previous reads what the container before the one that runs said after the last
// line that was read. It returns how many lines came: none when there was no such
// container in this pod, or its log is gone; that the agent started anew is told in
// any case.
func (n *followed) previous(ctx context.Context, t target) (lines int) {
	o := n.sinceLast()
	o.Previous = true
	ctx, cancel := context.WithTimeout(ctx, restLimit)
	defer cancel()
	lines, _ = n.readLog(ctx, t, o)
	return lines
}

// rest reads what a container that has ended said after the last line that was
// read: it may have died while its log was not followed. It reports whether
// another one said it, so that it has been started anew already.
func (n *followed) rest(ctx context.Context, t target) (anew bool) {
	var instance string
	n.do(func(s *stream) { instance = s.agent.Instance })
	ctx, cancel := context.WithTimeout(ctx, restLimit)
	defer cancel()
	// Of one whose log is gone, or whose node is, nothing more is to be had.
	_, _ = n.readLog(ctx, t, n.sinceLast())
	n.do(func(s *stream) { anew = s.agent.Instance != instance })
	return anew
}

// sinceLast asks for what came after the last line, and, since the API takes
// whole seconds, a little more: what comes twice is passed over.
func (n *followed) sinceLast() corev1.PodLogOptions {
	o := corev1.PodLogOptions{Container: Container}
	n.do(func(s *stream) {
		if !s.lineAt.IsZero() {
			o.SinceTime = new(metav1.NewTime(s.lineAt.Add(-time.Second)))
		}
	})
	return o
}

// isAnother reports that a line is the first one of another agent than the one that
// was heard last.
func (n *followed) isAnother(line []byte) (other bool) {
	e, err := collect.Unmarshal(line)
	if err != nil {
		return false
	}
	n.do(func(s *stream) { other = s.isAnother(e) })
	return other
}

// firstLine looks at the first line of what is to be read, without its end; nil
// when there is none, or it is longer than lines are. It waits for it.
func firstLine(in *bufio.Reader) []byte {
	for {
		b, _ := in.Peek(in.Buffered())
		if i := bytes.IndexByte(b, '\n'); i >= 0 {
			return b[:i]
		}
		if _, err := in.Peek(len(b) + 1); err != nil {
			return nil // whoever reads meets it, too
		}
	}
}

// wholeSeconds rounds up: the API takes whole seconds from 1 on (ValidatePodLogOptions in
// k8s.io/kubernetes pkg/apis/core/validation).
func wholeSeconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }

// readLog reads one answer to its end.
func (n *followed) readLog(ctx context.Context, t target, o corev1.PodLogOptions) (lines int, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	body, err := n.f.client.CoreV1().Pods(n.f.o.Namespace).GetLogs(t.name, &o).Stream(ctx)
	if err != nil {
		return 0, err
	}
	defer body.Close()
	idle := time.AfterFunc(idleLimit, func() { cancel(errIdle) })
	defer idle.Stop()
	in := bufio.NewReaderSize(body, agentLine)
	// An answer is of one container, so that its first line tells of which.
	if !o.Previous && n.isAnother(firstLine(in)) {
		lines += n.previous(ctx, t)
	}
	var cut lineBuffer
	for {
		_, err := in.Peek(1) // waits
		if b, _ := in.Peek(in.Buffered()); len(b) > 0 {
			idle.Reset(idleLimit)
			now := n.f.o.Clock.Now()
			n.do(func(s *stream) {
				cut.feed(b, func(line []byte) {
					lines++
					s.read(line, now)
				})
			})
			_, _ = in.Discard(len(b)) // they are there
		}
		switch {
		case err == nil:
		case errors.Is(err, io.EOF):
			return lines, nil
		case errors.Is(context.Cause(ctx), errIdle):
			return lines, errIdle
		case ctx.Err() != nil || strings.Contains(err.Error(), "stream error"):
			return lines, nil // tried again; the numbers tell whether anything is missing
		default:
			return lines, err
		}
	}
}

var errIdle = fmt.Errorf("nothing came for %s", idleLimit)
