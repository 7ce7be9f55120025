//go:build linux

package main

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/stillwater-rpc/stillwater/bench/prove"
	"github.com/stillwater-rpc/stillwater/bench/report"
	"github.com/stillwater-rpc/stillwater/bench/workload"
	sw "github.com/stillwater-rpc/stillwater/runtime"
)

// show prints inputs, table, and what differs; the bound is on ours at twice the capacity.
func (e *experiment) show(r *prove.Run) error {
	e.machine(r)
	if err := e.table(r); err != nil {
		return err
	}
	e.explain(r)
	for i, p := range e.points {
		if p.Spike {
			e.timeline(r, i)
		}
	}
	if err := e.doubt(); err != nil {
		return err
	}
	for i, p := range e.points {
		if p.Spike || p.Scheme != sw.SchemeStillwater || p.Load != boundLoad || p.Service.Shape != workload.Constant {
			continue
		}
		off := e.spread(i, func(c *comparison) float64 {
			if d, ok := c.difference(c.Predicted); ok {
				return d
			}
			return -1 // ours serves nobody: whoever foresaw that, it is no agreement
		})
		return r.AtMost("goodput of ours at 2 times capacity, off its prediction by", 100*math.Abs(off.Median), 100*differsAt, "%")
	}
	return nil
}

// machine prints the inputs.
func (e *experiment) machine(r *prove.Run) {
	text := func(divide float64, decimals int, figure func(in inputs) float64) string {
		var all []float64
		for _, in := range e.inputs {
			all = append(all, figure(in))
		}
		return prove.SpreadOf(all).Text(divide, decimals)
	}
	us := func(figure func(in inputs) time.Duration) string {
		return text(1e3, 1, func(in inputs) float64 { return float64(figure(in)) })
	}
	r.Say("\nWhat the prediction is made from: round trip alone %s us; capacity with %v of work %s k/s, so a request costs %s us besides, half in each direction; SLO %v.",
		us(func(in inputs) time.Duration { return in.RoundTrip }), prove.Work, text(1e3, 1, func(in inputs) float64 { return in.CapacityPerS }),
		us(func(in inputs) time.Duration { return in.Cost }), e.slo)
	r.Say("While capacity was measured, other processes had the server's CPU for %s %% of the time, %s us each time; in the best %v it was %s k/s. By what the kernel does not see, a spin on it is stopped for %s %% of the time, %s us each time.",
		text(0.01, 1, func(in inputs) float64 { return in.ServerAway.Share }), us(func(in inputs) time.Duration { return in.ServerAway.Mean }),
		undisturbedSlice, text(1e3, 1, func(in inputs) float64 { return in.UndisturbedPerS }),
		text(0.01, 2, func(in inputs) float64 { return in.Stalls.Share }), us(func(in inputs) time.Duration { return in.Stalls.Mean }))
	r.Say("Beside it, and not used: an echo and its reply take at most %s us, a request and its refusal at most %s us; at half load the generator was late by %s us at the 50th and %s us at the 99th percentile, and its CPU was taken for %s %% of the time.\n",
		us(func(in inputs) time.Duration { return in.Echo }), us(func(in inputs) time.Duration { return in.Refusal }),
		us(func(in inputs) time.Duration { return in.Lateness.P50 }), us(func(in inputs) time.Duration { return in.Lateness.P99 }),
		text(0.01, 1, func(in inputs) float64 { return in.ClientAway.Share }))
}

// spread is one figure of a point over all rounds.
func (e *experiment) spread(at int, figure func(*comparison) float64) prove.Spread {
	var all []float64
	for _, round := range e.rounds {
		all = append(all, figure(&round[at]))
	}
	return prove.SpreadOf(all)
}

func newTable(r *prove.Run) *report.Table {
	return report.NewTable(r.Out, false,
		report.Column{Title: "point", Width: 24, Left: true},
		report.Column{Title: "scheme", Width: 10, Left: true},
		report.Column{Title: "goodput", Unit: "% of capacity", Width: 14},
		report.Column{Title: "predicted", Unit: "% of capacity", Width: 14},
		report.Column{Title: "differs", Unit: "%", Width: 15},
		report.Column{Title: "with CPU away", Unit: "% of capacity", Width: 14},
		report.Column{Title: "differs", Unit: "%", Width: 15},
		report.Column{Title: "p99", Unit: "us", Width: 8},
		report.Column{Title: "predicted", Unit: "us", Width: 9},
		report.Column{Title: "away", Unit: "us", Width: 8},
		report.Column{Title: "rejected", Unit: "% real/pred.", Width: 12},
		report.Column{Title: "expired", Unit: "% real/pred.", Width: 12},
		report.Column{Title: "late", Unit: "% real/pred.", Width: 12},
		report.Column{Title: "generator", Unit: "us late", Width: 9},
		report.Column{Title: "CPU away", Unit: "% srv/client", Width: 12},
		report.Column{Title: "marks", Unit: "> 10 %", Width: 12, Left: true},
		report.Column{Title: "seen", Width: 8, Left: true},
	)
}

func (e *experiment) table(r *prove.Run) error {
	if r.JSON() {
		return nil // the points are there already
	}
	t := newTable(r)
	for i, p := range e.points {
		median := func(figure func(*comparison) float64) float64 { return e.spread(i, figure).Median }
		share := func(figure func(*comparison) float64) string { return e.spread(i, figure).Text(0.01, 0) }
		both := func(figure func(figures) float64) string {
			return fmt.Sprintf("%.1f/%.1f", 100*median(func(c *comparison) float64 { return figure(c.Real) }),
				100*median(func(c *comparison) float64 { return figure(c.Predicted) }))
		}
		us := func(figure func(*comparison) float64) string { return fmt.Sprintf("%.0f", median(figure)/1e3) }
		err := t.Row(p.label(), p.Scheme,
			share(func(c *comparison) float64 { return c.Real.GoodputPerS / c.CapacityPerS }),
			share(func(c *comparison) float64 { return c.Predicted.GoodputPerS / c.CapacityPerS }), e.differences(i, func(c *comparison) figures { return c.Predicted }),
			share(func(c *comparison) float64 { return c.WithAway.GoodputPerS / c.CapacityPerS }), e.differences(i, func(c *comparison) figures { return c.WithAway }),
			us(func(c *comparison) float64 { return c.Real.LatencyP99 }), us(func(c *comparison) float64 { return c.Predicted.LatencyP99 }),
			us(func(c *comparison) float64 { return c.WithAway.LatencyP99 }),
			both(func(f figures) float64 { return f.Rejected }), both(func(f figures) float64 { return f.Expired }), both(func(f figures) float64 { return f.Late }),
			us(func(c *comparison) float64 { return float64(c.Lateness.P99) }),
			fmt.Sprintf("%.1f/%.1f", 100*median(func(c *comparison) float64 { return c.ServerAway.Share }), 100*median(func(c *comparison) float64 { return c.ClientAway.Share })),
			e.marks(i), e.seen(i))
		if err != nil {
			return err
		}
	}
	return nil
}

// label is a point's name in the table.
func (p point) label() string {
	name := fmt.Sprintf("%s %v %.1fx", p.Experiment, p.Service.Shape, p.Load)
	if p.Spike {
		name = fmt.Sprintf("%s %v %.1f-%.1f-%.1fx", p.Experiment, p.Service.Shape, spike[0], spike[1], spike[2])
	}
	return name
}

// differenceMax is far enough for a table: the prediction was next to nothing.
const differenceMax = 9.99

// differences is how far the goodput is from a prediction over the rounds in which there was any.
func (e *experiment) differences(at int, from func(*comparison) figures) any {
	var all []float64
	for _, round := range e.rounds {
		if d, ok := round[at].difference(from(&round[at])); ok {
			all = append(all, min(d, differenceMax))
		}
	}
	if len(all) == 0 {
		return nil
	}
	return prove.SpreadOf(all).Text(0.01, 0)
}

// marks says what of a point differs, in most of its rounds.
func (e *experiment) marks(at int) string {
	var marks []string
	for _, mark := range []struct {
		name string
		is   func(*comparison) bool
	}{{"goodput", (*comparison).goodputDiffers}, {"p99", (*comparison).tailDiffers}} {
		n := 0
		for _, round := range e.rounds {
			if mark.is(&round[at]) {
				n++
			}
		}
		if 2*n > len(e.rounds) {
			marks = append(marks, mark.name)
		}
	}
	return strings.Join(marks, " ")
}

// seen are the reasons of a point in any round.
func (e *experiment) seen(at int) string {
	var b strings.Builder
	for letterAt, s := range sentences {
		if slices.ContainsFunc(e.rounds, func(round []comparison) bool { return slices.Contains(round[at].Reasons, s.reason) }) {
			b.WriteString(letter(letterAt))
		}
	}
	return b.String()
}

// explain says what the letters mean, of those that are there, and at how many points each was seen.
func (e *experiment) explain(r *prove.Run) {
	total, goodput, explained := 0, 0, 0
	counts := make(map[reason]int)
	for _, round := range e.rounds {
		for i := range round {
			c := &round[i]
			total++
			if c.goodputDiffers() {
				goodput++
				if d, ok := c.difference(c.WithAway); ok && math.Abs(d) <= differsAt {
					explained++
				}
			}
			for _, seen := range c.Reasons {
				counts[seen]++
			}
		}
	}
	r.Say("\nOf %d points and rounds, %d differ by more than 10 %% in goodput, of which %d do not from the prediction with the CPU away. At those that differ in goodput or p99:", total, goodput, explained)
	for at, s := range sentences {
		if n := counts[s.reason]; n > 0 {
			r.Say("  %s. %s, %d times: %s.", letter(at), s.reason, n, s.text)
		}
	}
}

// errBusy says that there was nothing to be measured: who gets the CPU is no property of the server.
var errBusy = errors.New("the machine is too busy: no prediction means anything, so none is judged: repeat it with the machine to yourself")

// doubt says when the figures mean nothing.
func (e *experiment) doubt() error {
	var busy []float64
	for _, in := range e.inputs {
		busy = append(busy, max(in.ServerAway.Share, in.ClientAway.Share))
	}
	if taken := prove.SpreadOf(busy); taken.Median >= busyAt {
		return fmt.Errorf("%w (other processes had one of the two CPUs for %s %% of the time)", errBusy, taken.Text(0.01, 0))
	}
	return nil
}

// busyAt is where a machine is too busy: as much as what is to be told apart.
const busyAt = differsAt

// timeline is the goodput of E6 slice by slice, as a share of what capacity was.
func (e *experiment) timeline(r *prove.Run, at int) {
	line := func(of func(*comparison) figures) string {
		var b strings.Builder
		for i := range of(&e.rounds[0][at]).Slices {
			fmt.Fprintf(&b, " %.0f", 100*e.spread(at, func(c *comparison) float64 { return of(c).Slices[i] / c.CapacityPerS }).Median)
		}
		return b.String()
	}
	p := e.points[at]
	r.Say("%s, %s, goodput of each %v in %% of capacity:\n  real     %s\n  predicted%s\n  with away%s", p.label(), p.Scheme, slice,
		line(func(c *comparison) figures { return c.Real }), line(func(c *comparison) figures { return c.Predicted }), line(func(c *comparison) figures { return c.WithAway }))
}
