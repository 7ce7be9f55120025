package toolbox

import (
	"context"
	"time"

	"github.com/stillwater-rpc/stillwater/bench/simulate"
	"github.com/stillwater-rpc/stillwater/credit/baseline"
	"github.com/stillwater-rpc/stillwater/dispatcher"
	"github.com/stillwater-rpc/stillwater/runtime/sim"
)

// e20 is the pipeline.
func e20() *Experiment {
	return &Experiment{
		ID: "E20", Title: "a pipeline of three stages",
		About: "Items go through three servers, the last of which takes 1 ms and the others 0.5 ms each. Buffer: 1,500 items a second, and each stage takes an item, says so, and hands it on. Shed: the same\n" +
			"items have 100 ms, each stage answers when the next one has, and the last refuses what is too much. Press back: each of 2,000 producers hands its next item over when the last\n" +
			"one is through, calls block, and every stage has credits. Lost: items that a stage had taken. Held: inside of the stages, at most and at the end. Wasted: of the work of the first two\n" +
			"stages, for what was lost.",
		Figures: []string{figGoodput, figShare, figLost, figWasted, figHeldMax, figHeldEnd},
		Jobs:    e20Jobs, Judge: e20Judge,
	}
}

const (
	pipeOffered   = 1500
	pipeTimeout   = 100 * time.Millisecond
	pipeLast      = time.Millisecond
	pipeOther     = 500 * time.Microsecond
	pipeProducers = 2000
	pipeWorkers   = 64 // handlers of a stage, those that wait for the next one included
	pipeQueue     = 50
	pipeWarmup    = 2 * time.Second
	armBuffer     = "buffer"
	armShed       = "shed"
	armPress      = "press back"
)

func e20Jobs(size Size) (all []job) {
	length := 10 * time.Second
	if size.Full {
		length = time.Minute
	}
	for _, arm := range []string{armBuffer, armShed, armPress} {
		all = append(all, job{At: "three stages", Arm: arm, Play: func(ctx context.Context, seed uint64) (Sample, error) {
			p := &pipeline{arm: arm, w: stage(seed), seed: seed}
			return p.play(ctx, length)
		}})
	}
	return all
}

// pipeline is three machines, each of which calls the next.
type pipeline struct {
	arm   string
	seed  uint64
	w     *sim.World
	first *sim.Machine
	head  *sim.Source // of items, to the first stage

	started, ended int           // items, at the first stage, and through or lost
	held           int           // at most
	finished, lost int           // after the warm-up
	work, wasted   time.Duration // of the first two stages
}

func (p *pipeline) play(ctx context.Context, length time.Duration) (Sample, error) {
	if err := p.build(); err != nil {
		return Sample{}, err
	}
	if p.arm == armPress {
		for client := range pipeProducers {
			p.w.At(0, func() { p.head.Call(client % p.head.Clients()) })
		}
	} else if err := p.head.SetRate(pipeOffered); err != nil {
		return Sample{}, err
	}
	p.watch()
	if err := simulate.Advance(ctx, p.w, pipeWarmup+length); err != nil {
		return Sample{}, err
	}
	goodput := float64(p.finished) / length.Seconds()
	return Sample{Figures: map[string]float64{
		figGoodput: goodput, figShare: goodput / (server{service: pipeLast}).capacity(), figLost: float64(p.lost) / float64(max(p.lost+p.finished, 1)),
		figWasted: float64(p.wasted) / float64(p.work), figHeldMax: float64(p.held), figHeldEnd: float64(p.inside()),
	}}, p.w.Audit()
}

// build puts the stages up, from the last one.
func (p *pipeline) build() error {
	var next *sim.Source
	for i, service := range []time.Duration{pipeLast, pipeOther, pipeOther} {
		s := server{service: service, slo: pipeTimeout, slots: 1024, plan: p.plan(service, next, i == 2)}
		s.serve.Workers = 1 << 16
		switch {
		case p.arm == armPress:
			s.scheme = baseline.Stillwater
			s.serve.Workers = pipeWorkers
		case p.arm == armShed && next == nil:
			s.serve.QueueMax = pipeQueue
		}
		m, err := s.add(p.w, p.seed)
		if err != nil {
			return err
		}
		if next != nil {
			if err := next.AddClients(m.Host, 1); err != nil {
				return err
			}
		}
		p.first, next = m, p.w.NewSource(m, sim.SourceConfig{})
		if p.head, err = s.callers(p.w, m, p.items(), p.seed); err != nil {
			return err
		}
	}
	return nil
}

// plan is what a stage does: its work, and then the next stage.
func (p *pipeline) plan(service time.Duration, next *sim.Source, first bool) sim.Plan {
	begin := func(h *sim.Handling) { p.hand(h, service, next, first) }
	if next == nil {
		begin = func(h *sim.Handling) {
			p.end(p.arm == armBuffer, true)
			h.Resume(true)
		}
	}
	return func(_ sim.Work, steps []sim.Step) []sim.Step {
		if first {
			p.started++
		}
		return append(steps, sim.Step{For: service}, sim.Step{Kind: sim.StepAwait, Begin: begin})
	}
}

// hand gives an item to the next stage.
func (p *pipeline) hand(h *sim.Handling, service time.Duration, next *sim.Source, first bool) {
	p.work += service
	ask := sim.Ask{Deadline: h.Left()}
	if p.arm == armBuffer {
		next.Ask(0, ask)
		h.Resume(true)
		return
	}
	end := func(ok bool) {
		if !ok {
			p.wasted += service
		}
		p.end(first, ok)
		h.Resume(ok)
	}
	if h.Left() < 0 {
		end(false)
		return
	}
	ask.Done = func(o *sim.Observation) { end(o.Call.Outcome == dispatcher.OutcomeOK) }
	next.Ask(0, ask)
}

// items are the calls of the first stage.
func (p *pipeline) items() sim.SourceConfig {
	c := sim.SourceConfig{Service: constant(pipeOther), Observe: func(o *sim.Observation) {
		if client := o.Client; p.arm == armPress {
			p.w.At(p.w.Elapsed(), func() { p.head.Call(client) })
		}
	}}
	if p.arm == armShed {
		c.Deadline = pipeTimeout
	}
	return c
}

// end counts an item that is through or lost, where that is known: where its handler at the first stage ends, or, with a buffer, at the last.
func (p *pipeline) end(known, ok bool) {
	if !known {
		return
	}
	p.ended++
	switch {
	case p.w.Elapsed() < pipeWarmup:
	case ok:
		p.finished++
	default:
		p.lost++
	}
}

// inside is how many items the stages hold, those that wait for the first one included.
func (p *pipeline) inside() int { return p.started - p.ended + p.first.Dispatcher().Queued() }

// watch looks at what the stages hold, again and again.
func (p *pipeline) watch() {
	p.held = max(p.held, p.inside())
	p.w.At(p.w.Elapsed()+10*time.Millisecond, p.watch)
}

func e20Judge(t *Table) []Check {
	buffer, shed, press := t.Of(armBuffer), t.Of(armShed), t.Of(armPress)
	return []Check{
		bound("shed: goodput of the bottleneck's capacity", shed, figShare, 0.98, true),
		bound("shed: items are lost", shed, figLost, 0.25, true),
		bound("press back: goodput of the bottleneck's capacity", press, figShare, 0.98, true),
		bound("press back: items lost", press, figLost, 0, false),
		bound("press back: held inside of the stages", press, figHeldMax, 3*pipeWorkers+pipeQueue, false),
		bound("the control arm, buffer, holds more and more: items at the end", buffer, figHeldEnd, 0.25*pipeOffered*10, true),
	}
}
