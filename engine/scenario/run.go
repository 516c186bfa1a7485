package scenario

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/kconverge/kconverge/collect"
	"github.com/kconverge/kconverge/engine/lab/faults"
	"github.com/kconverge/kconverge/engine/live"
	"github.com/kconverge/kconverge/engine/timeline"
)

// Lab is what a scenario is played in: *lab.Lab.
type Lab interface {
	WaitReady(ctx context.Context) error
	SetFaults(ctx context.Context, by string, texts ...string) error
	ClearFaults(ctx context.Context, by string) error
	Faults() []faults.Active
	SetTraffic(ctx context.Context, by string, rate int) error
	Refused() error
	Vouch()
}

// by is whose doing it is, on the axis.
const by = "scenario"

// Options say how a scenario is played.
type Options struct {
	Scenario *Scenario
	Lab      Lab
	Runtime  *live.Runtime
	// Kubeconfig leads to the lab; it is asked once the lab is ready.
	Kubeconfig func() []byte
	// Control leaves the cause out: the expectations must fail then.
	Control bool
	// Tell is told everything that happens, in order; nil for nobody.
	Tell func(Line)
	// Next waits at the beginning of each chapter but the first until it may go on, and
	// at the end, so that the last words can be read; nil goes on at once.
	Next func(ctx context.Context) error
	// StopAtFirst ends the run with the first expectation that is not met.
	StopAtFirst bool
}

// LineKind is what a Line is.
type LineKind string

// Kinds of Line.
const (
	LineChapter LineKind = "chapter"
	LineSay     LineKind = "say"
	LineDo      LineKind = "do"
	LineMet     LineKind = "met"
	LineNotMet  LineKind = "not met"
)

// Line is something that a scenario tells.
type Line struct {
	Kind LineKind
	Text string
	// Found is what was found, of an expectation.
	Found string
}

// Outcome is what became of a scenario.
type Outcome struct {
	// Results are those of its expectations, and of an until that did not come true,
	// after which nothing more is done.
	Results []Result
}

// Met reports that all expectations were met.
func (o *Outcome) Met() bool {
	return !slices.ContainsFunc(o.Results, func(r Result) bool { return !r.Met })
}

// NotMet counts the expectations that were not.
func (o *Outcome) NotMet() (n int) {
	for _, r := range o.Results {
		if !r.Met {
			n++
		}
	}
	return n
}

// ErrNoPackets says that a scenario cannot be played where no packets flow.
var ErrNoPackets = errors.New("its packets must flow, and this system refuses network namespaces")

// player is one run.
type player struct {
	o       Options
	client  *client
	marks   map[string]time.Time
	chapter string
	begun   bool   // a chapter has
	said    string // the last narration
	outcome Outcome
	// beside is what goes on beside the steps, until besideCtx ends with them.
	beside    errgroup.Group
	besideCtx context.Context
}

// Play plays a scenario to its end. The error is what kept it from going on; what was
// expected and not met is in the Outcome.
func Play(ctx context.Context, o Options) (*Outcome, error) {
	p := &player{o: o, marks: map[string]time.Time{}}
	if err := p.play(ctx); err != nil {
		return &p.outcome, fmt.Errorf("scenario %s: %w", o.Scenario.Name, err)
	}
	return &p.outcome, nil
}

func (p *player) play(ctx context.Context) (err error) {
	s := p.o.Scenario
	if s.Kernel && p.o.Lab.Refused() != nil {
		return fmt.Errorf("%w: %w", ErrNoPackets, p.o.Lab.Refused())
	}
	if err := p.o.Lab.WaitReady(ctx); err != nil {
		return err
	}
	c, err := newClient(p.o.Kubeconfig())
	if err != nil {
		return err
	}
	p.client = c
	var stop context.CancelFunc
	p.besideCtx, stop = context.WithCancel(ctx)
	defer func() { stop(); err = errors.Join(err, p.beside.Wait()) }()
	defer p.narrate(&collect.Narration{Ended: true})
	if about := s.about(); about != "" {
		p.say(about)
	}
	if s.Traffic > 0 {
		if err := p.traffic(ctx, s.Traffic); err != nil {
			return err
		}
	}
	for i := range s.Steps {
		step := &s.Steps[i]
		if !step.taken(p.o.Control) {
			continue
		}
		goOn, err := p.step(ctx, step)
		if err != nil {
			return fmt.Errorf("line %d: %w", step.line, err)
		}
		if !goOn {
			break
		}
	}
	p.end(ctx)
	return nil
}

// end leaves the last words standing until somebody has read them.
func (p *player) end(ctx context.Context) {
	if p.said == "" || p.o.Next == nil {
		return
	}
	p.narrate(&collect.Narration{Text: p.said, Next: "the end", Waiting: true})
	_ = p.o.Next(ctx) // whoever leaves has seen enough
}

// step takes one step; goOn is false when nothing that follows makes sense.
func (p *player) step(ctx context.Context, s *Step) (goOn bool, err error) {
	switch {
	case s.Chapter != "":
		return true, p.begin(ctx, s.Chapter)
	case s.Say != "":
		p.say(s.Say)
	case s.Kubectl != "":
		return true, p.kubectl(ctx, s)
	case s.Deploy != nil:
		list, err := s.Deploy.objects()
		if err != nil {
			return false, err
		}
		p.do(fmt.Sprintf("deploy %s, %d", s.Deploy.Name, s.Deploy.Replicas), s.Deploy.Name)
		for _, u := range list {
			if err := p.client.apply(ctx, u); err != nil {
				return false, err
			}
		}
	case s.Apply != "":
		return true, p.apply(ctx, s.Apply)
	case len(s.Fault) > 0:
		return true, p.fault(ctx, s.Fault)
	case len(s.Clear) > 0:
		return true, p.clear(ctx, s.Clear)
	case s.Traffic != nil:
		return true, p.traffic(ctx, *s.Traffic)
	case s.Controller != nil:
		p.tell(LineDo, "controller of "+s.Controller.Gate, "")
		p.beside.Go(func() error { return p.client.control(p.besideCtx, s.Controller) })
	case s.Mark != "":
		p.marks[s.Mark] = time.Now()
	case s.Wait != "":
		return p.wait(ctx, s)
	case s.Until != nil:
		return p.until(ctx, s)
	case s.Expect != nil:
		return p.expect(ctx, s)
	}
	return true, nil
}

// begin begins a chapter, when somebody says so.
func (p *player) begin(ctx context.Context, chapter string) error {
	if p.begun && p.o.Next != nil {
		p.narrate(&collect.Narration{Text: p.said, Next: chapter, Waiting: true})
		if err := p.o.Next(ctx); err != nil {
			return err
		}
	}
	p.begun, p.chapter = true, chapter
	p.tell(LineChapter, chapter, "")
	p.narrate(&collect.Narration{})
	return nil
}

func (p *player) say(text string) {
	text = strings.Join(strings.Fields(text), " ")
	p.said = text
	p.tell(LineSay, text, "")
	p.narrate(&collect.Narration{Text: text})
}

func (p *player) narrate(n *collect.Narration) {
	n.Scenario, n.Chapter = p.o.Scenario.Name, p.chapter
	p.emit(n)
}

func (p *player) emit(payload collect.Payload) {
	p.o.Runtime.Emit(collect.Event{At: time.Now(), Source: collect.SourceUser, Payload: payload})
}

func (p *player) tell(kind LineKind, text, found string) {
	if p.o.Tell != nil {
		p.o.Tell(Line{kind, collect.Plain(text), collect.Plain(found)})
	}
}

// do tells of an action, and marks it on the axis of the Service that it is about, or
// of all.
func (p *player) do(text, service string) {
	p.tell(LineDo, text, "")
	p.emit(&collect.Action{Namespace: "default", Service: service, Text: text, By: by})
}

// fill fills in the places of a text. What they name may just be coming to be.
func (p *player) fill(ctx context.Context, text string) (out string, err error) {
	wait, cancel := context.WithTimeout(ctx, defaultWithin)
	defer cancel()
	_, _, waited := p.o.Runtime.Wait(wait, func(s *timeline.Snapshot) (bool, string) {
		out, err = fill(text, s)
		return err == nil, text
	})
	return out, errors.Join(err, ctx.Err(), ignoreDeadline(waited))
}

func ignoreDeadline(err error) error {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

func (p *player) kubectl(ctx context.Context, s *Step) error {
	line, err := p.fill(ctx, s.Kubectl)
	if err != nil {
		return err
	}
	c, err := parseKubectl(line)
	if err != nil {
		return err
	}
	p.tell(LineDo, "kubectl "+c.text, "")
	p.emit(&collect.Action{Text: c.mark(), By: by})
	return p.client.run(ctx, c)
}

func (p *player) apply(ctx context.Context, text string) error {
	text, err := p.fill(ctx, text)
	if err != nil {
		return err
	}
	list, err := manifests(text)
	if err != nil {
		return err
	}
	for _, u := range list {
		what := "apply " + strings.ToLower(u.GetKind()) + " " + u.GetName()
		p.tell(LineDo, what, "")
		p.emit(&collect.Action{Text: what, By: by})
		if err := p.client.apply(ctx, u); err != nil {
			return err
		}
	}
	return nil
}

func (p *player) fault(ctx context.Context, list List) error {
	var texts []string
	for _, f := range list {
		text, err := p.fill(ctx, f)
		if err != nil {
			return err
		}
		texts = append(texts, text)
		p.tell(LineDo, "fault "+text, "")
	}
	return p.o.Lab.SetFaults(ctx, by, texts...)
}

// traffic sets it. A scenario that is not about packets goes on where none flow.
func (p *player) traffic(ctx context.Context, rate int) error {
	if p.o.Lab.Refused() != nil {
		p.tell(LineDo, "no traffic: the nodes are in memory, and no packets flow", "")
		return nil
	}
	p.tell(LineDo, fmt.Sprintf("traffic %d/s", rate), "")
	return p.o.Lab.SetTraffic(ctx, by, rate)
}

func (p *player) clear(ctx context.Context, list List) error {
	p.tell(LineDo, "clear fault "+strings.Join(list, ", "), "")
	if slices.Contains(list, clearAll) {
		return p.o.Lab.ClearFaults(ctx, by)
	}
	return p.o.Lab.SetFaults(ctx, by, clears(list)...)
}

// wait waits for convergence, or for time to pass, which is the model's.
func (p *player) wait(ctx context.Context, s *Step) (goOn bool, err error) {
	cond := live.Convergence{Settled: true, After: time.Now(), Ask: p.o.Lab.Vouch}.Condition()
	limit := s.within()
	if d, err := time.ParseDuration(s.Wait); err == nil {
		end := time.Now().Add(d)
		limit += d
		cond = func(snap *timeline.Snapshot) (bool, string) { return snap.Now.After(end), s.Wait }
	}
	snap, why, ok, err := p.await(ctx, limit, cond)
	if err != nil || ok {
		return ok, err
	}
	_ = snap
	p.verdict(Result{That: "it converges", Found: fmt.Sprintf("not within %s: waiting for %s", limit, why)})
	return false, nil
}

// within is how long a step may take.
func (s *Step) within() time.Duration {
	if s.Within > 0 {
		return time.Duration(s.Within)
	}
	return defaultWithin
}

// await waits for a condition for at most so long; ok is false when it did not come
// true.
func (p *player) await(ctx context.Context, limit time.Duration, cond live.Condition) (snap *timeline.Snapshot, why string, ok bool, err error) {
	wait, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	snap, why, err = p.o.Runtime.Wait(wait, cond)
	switch {
	case err == nil:
		return snap, "", true, nil
	case ctx.Err() != nil:
		return snap, why, false, ctx.Err()
	case errors.Is(err, context.DeadlineExceeded):
		return snap, why, false, nil
	}
	return snap, why, false, err
}

// until waits until a check holds.
func (p *player) until(ctx context.Context, s *Step) (goOn bool, err error) {
	var last Result
	_, _, ok, err := p.await(ctx, s.within(), func(snap *timeline.Snapshot) (bool, string) {
		last = Judge(s.Until, snap, p.marks)
		return last.Met, last.Found
	})
	if err != nil || ok {
		return ok, err
	}
	if last.That == "" {
		last.That = "it comes to that"
	}
	last.Found = fmt.Sprintf("not within %s: %s", s.within(), last.Found)
	p.verdict(last)
	return false, nil
}

// expect judges by everything up to now: every source has vouched for it first.
func (p *player) expect(ctx context.Context, s *Step) (goOn bool, err error) {
	now := time.Now()
	snap, why, ok, err := p.await(ctx, s.within(), func(snap *timeline.Snapshot) (bool, string) {
		if snap.Watermark.Before(now) {
			p.o.Lab.Vouch()
			return false, "word of everything"
		}
		return true, ""
	})
	if err != nil {
		return false, err
	}
	if !ok {
		// A source that is kept silent is what some scenarios are about.
		_ = why
		if snap = p.o.Runtime.Latest(); snap == nil {
			return false, errors.New("nothing was observed")
		}
	}
	r := Judge(s.Expect, snap, p.marks)
	p.verdict(r)
	return r.Met || !p.o.StopAtFirst, nil
}

func (p *player) verdict(r Result) {
	p.outcome.Results = append(p.outcome.Results, r)
	kind := LineMet
	if !r.Met {
		kind = LineNotMet
	}
	p.tell(kind, r.That, r.Found)
	p.narrate(&collect.Narration{Text: r.That, Verdict: string(kind)})
}
