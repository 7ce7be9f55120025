package faultsim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"strings"
	"time"

	"github.com/stillwater-rpc/stillwater/credit"
	"github.com/stillwater-rpc/stillwater/dispatcher"
	"github.com/stillwater-rpc/stillwater/runtime/sim"
	"github.com/stillwater-rpc/stillwater/wire"
)

// Result is what came of a plan.
type Result struct {
	Seed       uint64            `json:"seed"`
	Scheme     string            `json:"scheme"`
	Faults     int               `json:"fault_count"`
	Calls      uint64            `json:"call_count"`
	Ran        uint64            `json:"ran_count"`
	Killed     uint64            `json:"killed_count"` // calls of hosts that were killed
	Outcomes   map[string]uint64 `json:"outcome_counts"`
	Dropped    map[string]uint64 `json:"dropped_counts"` // packets with a message of each type, by the faults that are after it
	Simulated  time.Duration     `json:"simulated_ns"`
	Settled    time.Duration     `json:"settled_ns"` // from the end of the faults until all recent calls had their outcomes
	Awake      time.Duration     `json:"awake_ns"`   // until each session then had a call answered
	Violations []string          `json:"violations,omitempty"`
}

// Failed reports whether something happened that must not.
func (r *Result) Failed() bool { return len(r.Violations) > 0 }

// Times of a run.
const (
	lateness  = 100 * time.Microsecond // after its deadline that a call may end: a few ticks of the timers
	lookEvery = time.Millisecond
	audits    = 16 // of the books, while the faults last
)

// play is a plan on the stage.
type play struct {
	Plan
	world   *sim.World
	machine *sim.Machine
	hosts   []*sim.Host
	source  *sim.Source
	dice    *rand.Rand

	active  []*Fault
	cuts    map[Fault]int
	deaths  map[*sim.Host]int
	late    time.Duration // after its deadline that a call may end
	pending []int         // recent calls without an outcome, by host; see settle

	judge  func(*sim.Observation) error // of tests, which want to see a violation
	ended  func(*sim.Observation)       // of the phase that is going on; nil = nobody wants to know
	result Result
}

// streamDice keeps the dice of the drops apart from all else that is random.
const streamDice = 1 << 32

// Play plays a plan. It returns an error for a plan that cannot be played, or if ctx ends. Several may be played at the same time.
func Play(ctx context.Context, plan Plan) (*Result, error) { return playJudged(ctx, plan, nil) }

func playJudged(ctx context.Context, plan Plan, judge func(*sim.Observation) error) (*Result, error) {
	if err := plan.Validate(); err != nil {
		return nil, err
	}
	p := &play{Plan: plan, judge: judge, cuts: make(map[Fault]int), deaths: make(map[*sim.Host]int)}
	p.result = Result{Seed: plan.Seed, Scheme: plan.Scheme, Faults: len(plan.Faults), Outcomes: make(map[string]uint64), Dropped: make(map[string]uint64)}
	err := p.guarded(ctx)
	checks := p.world.Checks()
	p.result.Calls, p.result.Ran, p.result.Killed = checks.Calls, checks.Ran, checks.Killed
	p.result.Simulated = p.world.Elapsed()
	return &p.result, err
}

// guarded is perform, with a panic of the code that is tested as a violation.
func (p *play) guarded(ctx context.Context) (err error) {
	defer func() {
		if r := recover(); r != nil {
			p.violate("panic: %v\n%s", r, culprit(debug.Stack()))
		}
	}()
	if err := p.prepare(); err != nil {
		return err
	}
	return p.perform(ctx)
}

// culprit is the part of a stack that says who panicked.
func culprit(stack []byte) string {
	text := string(stack)
	if _, after, found := strings.Cut(text, "panic("); found {
		text = after
	}
	lines := strings.SplitN(text, "\n", 12)
	return strings.Join(lines[:len(lines)-1], "\n")
}

// violate notes what must not happen.
func (p *play) violate(format string, args ...any) {
	const most = 16 // the first ones say what is wrong
	if len(p.result.Violations) < most {
		p.result.Violations = append(p.result.Violations, fmt.Sprintf("at %v: ", p.world.Elapsed())+fmt.Sprintf(format, args...))
	}
}

func (p *play) prepare() error {
	scheme, err := p.scheme()
	if err != nil {
		return err
	}
	p.world = sim.NewWorld(p.Seed, p.fair())
	p.dice = rand.New(rand.NewPCG(p.Seed, streamDice))
	cost := time.Duration(p.Cost)
	p.machine, err = p.world.AddMachine(
		dispatcher.Config{TrustedNetwork: p.Trusted, NoPacking: p.NoPacking, SlotsMax: scheme.Slots},
		sim.MachineConfig{
			CPUs: p.CPUs, Poller: p.Poller, Ring: p.Ring, Costs: sim.Costs{Receive: cost, Send: cost, Reject: cost / 2, Credit: cost / 2},
			Serve: dispatcher.ServeConfig{
				Workers: p.InService, AdaptWorkers: scheme.AdaptWorkers, TargetDelay: scheme.TargetDelay, DropThreshold: scheme.DropThreshold,
			},
			Ledger: func() *credit.Ledger {
				return credit.NewLedger(credit.Config{Slots: scheme.Slots, Checked: p.Checked}, scheme.NewController())
			},
		})
	if err != nil {
		return err
	}
	p.source = p.world.NewSource(p.machine, sim.SourceConfig{Observe: p.observe})
	p.pending, p.late = make([]int, p.Hosts), lateness
	for _, f := range p.Faults {
		if f.Kind == StallClient { // they may follow upon each other
			p.late += time.Duration(f.For)
		}
	}
	for range p.Hosts {
		p.hosts = append(p.hosts, p.world.AddHost(dispatcher.Config{
			SlotsMax: scheme.Slots, WaitingMax: p.Waiting, NoPacking: p.NoPacking, ClientPolicy: scheme.NewPolicy,
		}))
	}
	for i := range p.Sessions {
		if err := p.source.AddClients(p.hosts[i%p.Hosts], 1); err != nil {
			return err
		}
	}
	return nil
}

// perform plays the faults, and then sees to it that all is well again.
func (p *play) perform(ctx context.Context) error {
	p.forecast()
	for i := range p.Calls {
		c := &p.Calls[i]
		p.world.At(time.Duration(c.At), func() {
			p.call(c)
		})
	}
	for _, c := range p.Closes {
		p.world.At(time.Duration(c.At), func() { p.source.Close(c.Session) })
	}
	for i := range audits {
		p.world.Run(time.Duration(p.End) * time.Duration(i+1) / audits)
		if err := ctx.Err(); err != nil {
			return err
		}
		p.audit()
		if p.result.Failed() {
			return nil // what follows would only hide it
		}
	}
	for _, phase := range []func(){p.settle, p.wake, p.hurry, p.compare, p.collapse, p.leave} {
		if phase(); p.result.Failed() || ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}

// call makes a call. It counts before it begins, for it may end at once.
func (p *play) call(c *Call) {
	count, host := 0, c.Session%p.Hosts
	if p.isRecent(time.Duration(c.At)) {
		count = 1
	}
	p.pending[host] += count
	if !p.source.Ask(c.Session, sim.Ask{Service: time.Duration(c.Service), Deadline: time.Duration(c.Deadline), Cancel: time.Duration(c.Cancel)}) {
		p.pending[host] -= count
	}
}

// audit looks at all books.
func (p *play) audit() {
	if err := p.world.Audit(); err != nil {
		p.violate("%v", err)
	}
}

// observe sees each outcome.
func (p *play) observe(o *sim.Observation) {
	call := o.Call
	if p.ended == nil && p.isRecent(o.Made.Sub(p.world.Instant(0))) {
		p.pending[o.Client%p.Hosts]--
	}
	p.result.Outcomes[call.Outcome.String()]++
	if call.Deadline != 0 && o.Ended.Sub(call.Deadline) > p.late {
		p.violate("call %d ended %v after its deadline: %v", o.Work.ID, o.Ended.Sub(call.Deadline), call.Outcome)
	}
	switch call.Outcome {
	case dispatcher.OutcomeOK, dispatcher.OutcomeExpired, dispatcher.OutcomeDeadline, dispatcher.OutcomePeerLost, dispatcher.OutcomeCancelled,
		dispatcher.OutcomeQueueFull, dispatcher.OutcomeClosed, dispatcher.OutcomeThrottled:
	case dispatcher.OutcomeRejected:
		switch call.Reason {
		case wire.RejectOverloaded, wire.RejectExpired, wire.RejectCancelled:
		default:
			p.violate("call %d was rejected: %v", o.Work.ID, call.Reason)
		}
	default:
		p.violate("call %d: %v, which nothing here brings about", o.Work.ID, call.Outcome)
	}
	if p.judge != nil {
		if err := p.judge(o); err != nil {
			p.violate("%v", err)
		}
	}
	if p.ended != nil {
		p.ended(o)
	}
}
