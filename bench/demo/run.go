package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/stillwater-rpc/stillwater/bench/report"
	hwreport "github.com/stillwater-rpc/stillwater/hw/report"
	sw "github.com/stillwater-rpc/stillwater/runtime"
)

// Result is everything that was measured.
type Result struct {
	Calibration calibration
	Mode        string
	Steps       []Step
	Falls       []fall
	Verdict     string // one plain sentence
	Passed      bool

	missed  []string
	service time.Duration
}

// Run runs the whole experiment: calibration and sweep without control, sweep with credits, and the steps down.
func Run(ctx context.Context, cfg Config) (*Result, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	e := newExperiment(cfg)
	defer e.progress.Close()
	if err := e.run(ctx); err != nil {
		return nil, err
	}
	e.progress.Close()
	e.result.judge()
	return e.result, e.finish()
}

// experiment is a run under way.
type experiment struct {
	cfg      Config
	out      io.Writer
	table    *report.Table
	json     *report.JSONLines
	progress *report.Progress
	done     int64
	result   *Result
}

func newExperiment(cfg Config) *experiment {
	total := 2 + 2*len(cfg.Loads) + cfg.Steps
	e := &experiment{cfg: cfg, result: &Result{service: cfg.Service.Mean}, progress: report.NewProgress(cfg.Err, int64(total), "starting the lab")}
	e.out = e.progress.Around(cfg.Out)
	if cfg.JSON {
		e.json = report.NewJSONLines(e.out, "stillwater.demo.v1")
	} else {
		e.table = newTable(e.out)
	}
	return e
}

// advance notes that one part is done and says what comes next.
func (e *experiment) advance(next string) {
	e.done++
	e.progress.Describe(next)
	e.progress.Set(e.done)
}

// say prints a line for people; in JSON mode that is on standard error.
func (e *experiment) say(format string, args ...any) {
	w := e.out
	if e.cfg.JSON {
		w = e.progress.Around(e.cfg.Err)
	}
	fmt.Fprintf(w, format+"\n", args...)
}

// run is the order of things. Each arm has a lab of its own, so nothing of one is left when the other begins.
func (e *experiment) run(ctx context.Context) error {
	if err := e.first(ctx); err != nil {
		return err
	}
	slo := e.result.Calibration.slo
	for _, scheme := range []string{uncontrolled, controlled} {
		if err := e.withArm(ctx, scheme, slo, e.sweep); err != nil {
			return err
		}
	}
	return nil
}

// first calibrates. Where the lab cannot be had, it goes to loopback, and says why.
func (e *experiment) first(ctx context.Context) error {
	a, err := startArm(ctx, e.cfg, uncontrolled, sloFloor)
	if err != nil && !e.cfg.Loopback && e.cfg.Mode == sw.ModeAuto && ctx.Err() == nil {
		e.cfg.Loopback, e.cfg.Why = true, err.Error()
		a, err = startArm(ctx, e.cfg, uncontrolled, sloFloor)
	}
	if err != nil {
		return fmt.Errorf("starting the lab: %w", err)
	}
	if e.cfg.Loopback {
		e.say("Kernel UDP on loopback, not AF_XDP: %s.", e.cfg.Why)
	}
	return errors.Join(e.calibrate(ctx, a), a.close())
}

// withArm runs f in a fresh lab and takes the lab down whatever happens.
func (e *experiment) withArm(ctx context.Context, scheme string, slo time.Duration, f func(context.Context, *arm) error) error {
	a, err := startArm(ctx, e.cfg, scheme, slo)
	if err != nil {
		return fmt.Errorf("starting the lab: %w", err)
	}
	return errors.Join(f(ctx, a), a.close())
}

func (e *experiment) calibrate(ctx context.Context, a *arm) (err error) {
	e.advance("measuring round trip and capacity")
	if e.result.Calibration, err = a.calibrate(ctx); err != nil {
		return err
	}
	e.result.Mode = a.server.Mode
	if e.cfg.IPv6 {
		e.result.Mode += ", IPv6"
	}
	c := e.result.Calibration
	e.say("%s; %d clients; %v of work.", e.result.Mode, e.cfg.Sessions, e.cfg.Service)
	e.say("Unloaded round trip %v, capacity %.0f/s (%.0f %% of one request every %v), SLO %v.",
		c.roundTrip.Round(100*time.Nanosecond), c.capacityPerS,
		100*c.capacityPerS*e.cfg.Service.Mean.Seconds(), e.cfg.Service.Mean, c.slo)
	return nil
}

// sweep offers one load after the other; with credits, it steps down at the end.
func (e *experiment) sweep(ctx context.Context, a *arm) error {
	highest := slices.Max(e.cfg.Loads)
	for _, times := range e.cfg.Loads {
		e.advance(fmt.Sprintf("%v, %.1f times capacity", label(a.scheme), times))
		rounds := 1
		if times == highest {
			rounds = highestRounds
		}
		step, err := a.sweepStep(ctx, e.result.Calibration, times, rounds)
		if err != nil {
			return err
		}
		e.result.Steps = append(e.result.Steps, step)
		if err := e.print(step); err != nil {
			return err
		}
	}
	if a.scheme != controlled {
		return nil
	}
	for i := range e.cfg.Steps {
		e.advance(fmt.Sprintf("step down %d of %d", i+1, e.cfg.Steps))
		now, err := a.recalibrate(ctx, e.result.Calibration)
		if err != nil {
			return err
		}
		f, err := a.stepDown(ctx, now, e.cfg.Seed+uint64(i))
		if err != nil {
			return err
		}
		e.result.Falls = append(e.result.Falls, f)
	}
	if len(e.result.Falls) > 0 {
		e.say("%s", e.result.timeline())
	}
	return nil
}

func (e *experiment) print(s Step) error {
	if e.json != nil {
		return e.json.Write(s)
	}
	return row(e.table, s)
}

// finish prints the verdict and writes the page.
func (e *experiment) finish() error {
	if n := e.result.doubtful(); n > 0 {
		e.say("* In %d of %d steps the generator came late: its CPU was not its own, and their tails are partly its own.", n, len(e.result.Steps))
	}
	e.say("\n%s", e.result.Verdict)
	if e.cfg.HTML == "" {
		return nil
	}
	f, err := os.Create(e.cfg.HTML)
	if err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	err = errors.Join(e.page().WriteHTML(f), f.Close())
	if err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	e.say("The curves are in %s.", e.cfg.HTML)
	e.say("Machine: %v; seed %d.", hwreport.Facts(), e.cfg.Seed)
	return nil
}
