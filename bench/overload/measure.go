//go:build linux

package overload

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/stillwater-rpc/stillwater/bench/callers"
	"github.com/stillwater-rpc/stillwater/bench/prove"
	"github.com/stillwater-rpc/stillwater/bench/toolbox"
)

// experiment is one of the three.
type experiment struct {
	id        string
	arms      []arm
	size      toolbox.Size // of the simulator's run
	columns   []column
	calibrate time.Duration
	patience  time.Duration // of the callers
	// figures are an arm's by the names that they have in the simulator.
	figures func(a *arm, capacityPerS float64, r *callers.Result) map[string]float64
	judge   func(*table) error
	// Of what is no experiment of bench/toolbox: the arm that shows the capacity, how many calls each of those that it answers stands for, and the simulator's run.
	probe *arm
	each  float64
	play  func(ctx context.Context, a *arm, seed uint64) (map[string]float64, error)
}

// row is what one arm came to in one round.
type row struct {
	Kind         string             `json:"kind"`
	Experiment   string             `json:"experiment"`
	Point        string             `json:"point"`
	Arm          string             `json:"arm"`
	Round        int                `json:"round"`
	Seed         uint64             `json:"seed"`
	CapacityPerS float64            `json:"capacity_per_s"`
	Figures      map[string]float64 `json:"figures"`
	Calls        callers.Result     `json:"calls"`
}

// simulated is what the same arm comes to in the simulator.
type simulated struct {
	Kind       string             `json:"kind"`
	Experiment string             `json:"experiment"`
	Point      string             `json:"point"`
	Arm        string             `json:"arm"`
	Size       string             `json:"size"`
	Seed       uint64             `json:"seed"`
	Figures    map[string]float64 `json:"figures"`
}

// table is an experiment with what was measured.
type table struct {
	*experiment
	*prove.Run
	capacity  []float64
	rows      [][]row // by arm and round
	simulated []simulated
}

// measure plays all arms in each round, beginning with another one each time.
func (e *experiment) measure(ctx context.Context, r *prove.Run) (*table, error) {
	t := &table{experiment: e, Run: r, rows: make([][]row, len(e.arms))}
	r.Parts(len(e.arms))
	for round := range r.Rounds {
		seed := r.Seed + uint64(round)
		perS, err := e.capacity(ctx, r, seed)
		if err != nil {
			return nil, err
		}
		t.capacity = append(t.capacity, perS)
		for i := range e.arms {
			at := (i + round) % len(e.arms)
			a := &e.arms[at]
			r.Doing("round %d of %d: %s, %s", round+1, r.Rounds, a.point, a.name)
			result, err := a.run(ctx, r, seed)
			if err != nil {
				return nil, fmt.Errorf("%s, %s: %w", a.point, a.name, err)
			}
			one := row{"row", e.id, a.point, a.name, round, seed, perS, e.figures(a, perS, &result), result}
			t.rows[at] = append(t.rows[at], one)
			if err := r.Emit(one); err != nil {
				return nil, err
			}
			r.Advance()
		}
	}
	return t, nil
}

func (e *experiment) capacity(ctx context.Context, r *prove.Run, seed uint64) (perS float64, err error) {
	if e.probe == nil {
		return capacity(ctx, r, probe(), e.calibrate, seed)
	}
	perS, err = capacity(ctx, r, *e.probe, e.calibrate, seed)
	return e.each * perS, err
}

// playing is what an arm comes to in the simulator.
func (t *table) playing(ctx context.Context, a *arm) (map[string]float64, error) {
	if t.play != nil {
		return t.play(ctx, a, t.Seed)
	}
	s, err := toolbox.Play(ctx, t.id, a.point, a.name, t.size, t.Seed)
	return s.Figures, err
}

// simulate has the simulator play the arms: after all rounds, since it wants a CPU.
func (t *table) simulate(ctx context.Context) error {
	for i := range t.arms {
		a := &t.arms[i]
		figures, err := t.playing(ctx, a)
		if err != nil {
			return fmt.Errorf("simulating %s, %s: %w", a.point, a.name, err)
		}
		one := simulated{"simulated", t.id, a.point, a.name, t.size.Name, t.Seed, figures}
		t.simulated = append(t.simulated, one)
		if err := t.Emit(one); err != nil {
			return err
		}
	}
	return nil
}

// spread is a figure of an arm over the rounds that have it.
func (t *table) spread(arm int, figure string) prove.Spread {
	var all []float64
	for _, r := range t.rows[arm] {
		if v, found := r.Figures[figure]; found {
			all = append(all, v)
		}
	}
	return prove.SpreadOf(all)
}

// run measures, shows and judges.
func (e *experiment) run(ctx context.Context, r *prove.Run) error {
	t, err := e.measure(ctx, r)
	if err != nil {
		return err
	}
	if err := t.simulate(ctx); err != nil {
		return err
	}
	if err := errors.Join(t.show(), t.doubt()); err != nil {
		return err
	}
	return e.judge(t)
}

// errBusy says that there was nothing to be measured: what is late before it is sent is no fault of the server.
var errBusy = errors.New("the machine is too busy: callers came too late to their own calls, so nothing is judged: repeat it with the machine to yourself, or with a real-time priority (chrt --rr 1)")

// latenessShare of a caller's patience is how late callers may be, in 99 of 100 cases, and be believed.
const latenessShare = 0.1

// doubt says when the figures mean nothing. The control arms may be late: what makes them collapse is no matter of milliseconds.
func (t *table) doubt() error {
	for i := range t.arms {
		if late := t.spread(i, figLateness).Median; t.arms[i].name != armNone && late > latenessShare*float64(t.patience) {
			return fmt.Errorf("%w (%s, %s: %v late at p99, callers wait for %v)", errBusy, t.arms[i].point, t.arms[i].name, time.Duration(late).Round(time.Millisecond), t.patience)
		}
	}
	return nil
}
